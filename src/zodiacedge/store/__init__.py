"""A knowledge base that outlives its process.

A store is a folder, or a prefix of an object store, and it is a Delta Lake table: one for all predicates,
explicit facts and segments, with terms that a person, Polars or DuckDB can read. What is ours alone begins
with an underscore, which readers of Delta pass over:

    _zodiac.json            the format's version
    _lock                   held by the one writer of a folder
    _wal/….log              the write-ahead log: one record per version, kept as long as retention asks
    _delta_log/             Delta's own log; each commit of ours holds rules, version, counts and digest
    relation=…/segment=…/   Parquet files, each named by the SHA-256 of its bytes

A change is acknowledged once its record is there for good. Folding writes the parts that changed since the
last fold as one Delta commit. Opening loads the last commit and replays the records behind it through the
same code that made them, so a version is a commit and the records behind it, whatever came between.

    layout    the names of files, the format's version
    problems  the codes D001 and on
    arguments  what callers give, checked before anything is done
    place     where files are, whatever it is
    folder    a place on this machine
    disk, lock  how files get there whole, and how one writer stays alone
    objects   a place in an object store
    threads   calls that wait, several at a time
    log       records: checksums, what a torn record is
    log_file  records that are appended to a file, with group commit
    log_objects  records that are objects, the first of a version wins
    log_parts  facts of large changes, in files beside the log
    entry     what a record says
    records   what a record says, or why it is none
    terms     parts as facts
    snapshot  what a commit says beside the facts
    part_files  parts as Parquet files, one each or many small ones together
    renewal   which files a commit has in the place of others
    table     the Delta table: its commits
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
