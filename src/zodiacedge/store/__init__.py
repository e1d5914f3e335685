"""A knowledge base that outlives its process.

A store is a folder, or a prefix of an object store, that holds one Delta Lake table of all predicates,
explicit facts and segments, with terms that a person, Polars or DuckDB can read. Files of the store that are
not Delta's begin with an underscore, and Delta readers skip them:

    _zodiac.json            the format version
    _lock                   held by the only writer of a folder
    _wal/….log              the write-ahead log: one record per version, kept for the retention time
    _delta_log/             Delta's own log; each commit of ours holds rules, version, counts and digest
    relation=…/segment=…/   Parquet files, each named by the SHA-256 of its bytes

A change is acknowledged once its record is durable. A flush writes the partitions that changed since the last
flush as one Delta commit. Opening loads the last commit and replays the later records through the code that
wrote them, so a version is a commit plus the records after it.

    problems        the errors of a store, with their codes
    layout          file names and the format version
    location        folders and object stores: reads, atomic writes, the writer's lock
    log             the write-ahead log
    table           the Delta table
    versions        restore, replay, diff and vacuum of versions
    create          creates an empty store
    store           the open store: appends, flushes, loads versions, vacuums
    flush           flushes in the foreground, or in a background thread
    atomic_publish  publishes a store atomically
    knowledge_base  the knowledge base of a store
    export_slice    writes a slice of a knowledge base as a store

How facts get into and out of an engine is left to the engine (`engine.persistence`).
"""
