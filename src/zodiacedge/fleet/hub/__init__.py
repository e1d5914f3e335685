"""The hub: which device runs which pack, decided by rules, and served to devices.

assign.rules  the program that decides, unless an operator has another one
codes         codes that enrol a device once
assignments   the store of a hub: facts about devices, the rules, signed assignments
files         files of the repository, for devices
watch         notices new packs, rules and times to renew
server        the hub as a web server
"""
