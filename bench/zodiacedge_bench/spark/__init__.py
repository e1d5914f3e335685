"""What `zodiac bench spark` runs: the engine `spark` beside loops that people write in PySpark.

    stage     one session of Spark with its event log, and facts that lie ready in it
    clock     wall time, the processor time of all processes, and when it was
    trial     our engine from facts that lie ready
    measured  what a trial took, and when each run was
    loops     a transitive closure by data frames: the loop as most people write it, and one tuned by hand
    leaf      a rule that nobody reads, in and out, beside materialising again
    growth    LUBM once, twice, four and eight times as large
    events    where time goes, from Spark's own event log
    targets   what we want to reach
    report    all figures, as JSON too
    tables    the same as text
    plots     and as pictures
    suite     from options to a report

Everything runs in one session, with one set of settings, which is part of the report.
"""
