"""A process that runs for ever, and what a device pays for it.

readings    the workload: sensors, readings that never repeat, rules that come and go
soak        the workload through a window, its costs per tenth of the run
windows     ticks with one row due, and many readings a second, beside evaluating anew and DuckDB
footprint   memory, time to the first answer, and installed size of a device
idle_agent  the memory of an agent that has nothing to do, by part
report      all of them as tables, JSON and verdicts
"""
