"""The benchmarks: workloads with known counts, a clock, and other engines beside ours (`zodiac bench`).

    measure  tasks, the clock, percentiles, the machine
    changes  edits of rules and facts
    peers    other engines on the same facts
    report   tables, JSON, plots, targets
    suites   one function per benchmark: `graphs`, `paper`, `lubm`, `churn`, `peers`
    spark    the same on Spark, beside loops in PySpark
    command  the command line

Only `command` prints.
"""
