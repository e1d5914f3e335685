"""A knowledge base that outlives its process.

A store is a folder, or a prefix of an object store, and it is a Delta Lake table: one for all predicates,
explicit facts and segments, with terms that a person, Polars or DuckDB can read. What is ours alone begins
with an underscore, which readers of Delta pass over:

    _zodiac.json            the format's version
    _lock                   held by the one writer of a folder
    _wal/….log              the write-ahead log: one record per version, kept as long as retention asks
    _delta_log/             Delta's own log; each commit of ours holds rules, version, counts and digest
    relation=…/segment=…/   Parquet files, each named by the SHA-256 of its bytes

A change is acknowledged once its record is durable. A flush writes the partitions that changed since the last
flush as one Delta commit. Opening loads the last commit and replays the records behind it through the code
that made them, so a version is a commit and the records behind it.

    problems        the codes D001 and on
    layout          names of files, the format's version
    location        folders and object stores: reading, atomic writing, the writer's lock
    log             the write-ahead log
    table           the Delta table
    versions        versions restored, replayed, compared, vacuumed
    create          an empty store, step by step
    store           all of them together: open, append, flush, versions, vacuum
    flush           flushes at once, or in a background thread
    atomic_publish  publishes a store whole or not at all
    knowledge_base  the knowledge base of a store
    export_slice    a slice of a knowledge base as a store of its own

How facts get in and out of an engine is left to the engine (`engine.persistence`).
"""
