"""Packs: named, versioned sets of rules that are installed, upgraded and removed as a whole.

A pack is made from a folder and travels as one file; an upgrade may travel as a delta. In a knowledge base
every rule has owners, the base program and packs, and goes when its last owner does. What is in force is
changed by `kb`, as by any other change.

    problems      diagnostics of packs
    manifest      what a pack says about itself: name, version, namespaces, needs, checks
    fields        values of documents that came from outside, checked
    pack          a pack as a value; ids of rules and digests of sets of rules
    source        makes a pack from a folder
    delta         what turns one version of a pack into another
    file          packs and deltas as files
    owners        which packs are in force, and which rules they own
    base_program  what other changes may do to the rules of packs
    install       the change that installs and removes packs
"""
