"""What `zodiac bench` runs: workloads with known counts, a clock, and other engines beside ours.

The parts, each in its file:

    task         a program, its facts and the counts that must come out
    embedded     our engine from facts that are already encoded; the memory that its state takes
    peers/       other engines on the same facts, as ids
    harness      the clock: best of several runs, each in fresh state, every count checked

    live         a knowledge base with a task's rules and facts in it
    edits        a change as a user writes it, committed with the clock running
    fingerprint  what a store holds, in numbers that can be compared
    changes      edits beside from scratch
    graph_changes, lubm_changes, paper_changes  the edits of each benchmark
    churn        thousands of edits one after the other
    latency      their percentiles

    suites       one function per benchmark: `graphs`, `paper`, `lubm`, `churn`, `peers`
    targets      what we want to reach, and whether a report reaches it
    report       all figures of a benchmark, as JSON too
    tables       the same as text
    plots        figures as PNG and SVG, where matplotlib is installed
    machine      what it ran on
    spark/       the same on Spark

Nothing here prints; the command line does.
"""
