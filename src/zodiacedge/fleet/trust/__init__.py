"""Trust by The Update Framework (python-tuf): who may say what a device runs.

Keys of the roles root and packs stay offline. The online key signs timestamps, snapshots and the assignments
of packs to devices. A device runs a pack only if the pack is published by the key of packs and assigned to
it by the online key: who steals the online key can choose among published packs, and no more.

    keys        folders of keys
    metadata    roles, their expiry, and reading and writing of signed files
    repository  publishes packs, assigns them, renews and rotates; any static server may serve it
    wire        downloads with limits, which go on where they stopped
    client      what a device believes
"""
