"""The benchmark `zodiac bench spark`: the engine `spark` beside PySpark loops, all in one session.

    session   the Spark session with its event log, and knowledge bases with loaded facts
    clock     wall time, processor time of all processes, and the window in which a run took place
    trial     one evaluation by the engine `spark` from loaded facts
    measured  repeated runs of a trial, with their windows
    loops     transitive closure with data frames: the usual loop, and one tuned by hand
    rounds    recursion in rounds, beside the usual loops, from scratch and under change
    leaf      deleting and inserting a leaf rule, beside materialising again
    reads     jobs and rows read by proofs and ticks, for the benchmarks of explanations and windows
    growth    LUBM once, twice, four and eight times as large
    events    the profile of a run, from Spark's event log
    targets   targets and verdicts
    report    all figures, and their JSON
    tables    the figures as text
    plots     the figures as pictures
    suite     from options to a report

The settings of the session are part of the report.
"""
