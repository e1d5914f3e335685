"""Many devices against one hub on this machine, and what one changed rule costs a device.

devices   a process with many agents, led by lines on standard input
hub       a hub as a process, its processor time, and what goes over its wire
large     one rule changed among many: bytes on the wire, time on the device
run       enrols the devices, publishes, stops the hub and lets all of them come back
report    tables, JSON and verdicts
"""
