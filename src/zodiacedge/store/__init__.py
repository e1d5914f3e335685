"""A knowledge base that outlives its process.

A store is a folder, and the folder is a Delta Lake table: one for all predicates, explicit facts and
segments, with terms that a person, Polars or DuckDB can read. What is ours alone begins with an underscore,
which readers of Delta pass over:

    _zodiac.json            the format's version
    _lock                   held by the one writer
    _wal/….log              the write-ahead log: one record per version, kept as long as retention asks
    _delta_log/             Delta's own log; each commit of ours holds rules, version, counts and digest
    relation=…/segment=…/   Parquet files, each named by the SHA-256 of its bytes

A change is acknowledged once its record is on disk. Folding writes the parts that changed since the last
fold as one Delta commit. Opening loads the last commit and replays the records behind it through the same
code that made them, so a version is a commit and the records behind it, whatever came between.

    layout    the names of files, the format's version
    problems  the codes D001 and on
    lock      one writer
    log       records on disk: checksums, group commit, what a torn record is
    entry     what a record says
    records   what a record says, or why it is none
    terms     parts as facts
    table     the Delta table: parts as Parquet files, commits
    making    an empty store, step by step
    restore   from a commit back to a program and a state
    folding   bringing the table up to the log, beside the work
    durable   all of them together: open, append, fold, versions, vacuum
    replay    from records back to changes: to make them again, or to undo them
    diff      what tells two versions apart
    sweep     what no version needs any more
    slice     the part that one device needs
    publish   a store that is there whole or not at all
    size      what a store takes on disk

How facts get in and out of an engine is left to the engine; applying changes to `knowledge`.
"""
