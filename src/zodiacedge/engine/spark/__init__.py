"""The engine `spark`: the same language, the same maintenance, on a cluster or on the cores of one machine.

    session     one Spark session, and what it needs to start
    scratch     rows of a relation as Parquet files, and who removes them
    vocabulary  terms as 63-bit fingerprints, and the files that tell what they stand for
    jobs        one Spark job: what a task returns, what it fails with, how it is stopped
    region      a task that brings a region of hyper-nodes up to date, on the embedded engine
    sift        a task that finds out which facts really come and go
    ingest      files read in parallel, from splits
    frames      relations as data frames
    bodies      rule bodies as plans on them; what looks at values is left over
    values      what looks at values, by the embedded engine's kernels
    nodes       one node on data frames: by a plan, in rounds, from what came and went
    partitioned one recursive node in parts that never need each other
    sizes       how much a region of nodes reads and derives
    ways        which of these ways a node takes, and why
    attempt     one change: nodes in topological order, each by its way
    state       one version: names of files and counts; what can be asked of them

The driver holds names of files and counts, never rows, but for those that a user asks for.
"""
