"""The benchmarks: workloads with known counts, on our engines and on others.

    workloads   programs and generated data
    measure     tasks, the clock, percentiles, the machine
    changes     edits of rules and facts, beside an evaluation from scratch
    life        a process that runs for ever, and what a device pays
    fleet       hubs, agents and devices: what they cost, and how many a hub serves
    peers       other engines on the same facts
    report      tables, JSON, plots, targets
    evaluation  the committed results: the page made from them, a new run beside them
    suites      one function per benchmark: `graphs`, `paper`, `lubm`, `churn`, `tables`, `peers`, `quick`
    spark       the same on Spark, beside loops in PySpark
    command     `zodiac bench`
    generate    `zodiac generate`

Only the commands print.
"""
