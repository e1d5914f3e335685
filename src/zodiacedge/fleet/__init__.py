"""Rules that travel: who may send packs to devices, a hub that does, and an agent that takes them.

clock     the time of this machine
problems  diagnostics of fleets
identity  codes that enrol devices, keys of devices
trust     signed metadata: keys, a repository of packs, and a client that believes nothing else
hub       decides by rules which device runs which pack, and serves packs
agent     takes readings and keeps packs on a device
"""
