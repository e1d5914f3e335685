"""What `zodiac bench` runs: workloads with known counts, a clock, and other engines beside ours.

The parts, each in its file:

    task       a program, its facts and the counts that must come out
    embedded   our engine from facts that are already encoded; the memory that its state takes
    peers/     other engines on the same facts, as ids
    harness    the clock: best of several runs, each in fresh state, every count checked
    suites     one function per benchmark: `graphs`, `paper`, `lubm`, `peers`
    targets    what we want to reach, and whether a report reaches it
    report     figures as tables and as JSON
    plots      figures as PNG and SVG, where matplotlib is installed
    machine    what it ran on

Nothing here prints; the command line does.
"""
