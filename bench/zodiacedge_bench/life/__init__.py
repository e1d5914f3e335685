"""A process that runs for ever, and what a device pays for it.

readings   the workload: sensors, readings that never repeat, rules that come and go
soak       the workload through a window, its costs per tenth of the run
footprint  memory, time to the first answer, and installed size of a device
report     both as tables, JSON and verdicts
"""
