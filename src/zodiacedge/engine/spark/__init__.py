"""The engine `spark`: the same language and maintenance, on a cluster or on the cores of one machine.

The driver holds names of files and counts, never rows, but for those that a user asks for, and a limited
number that a small change may concern. A folder imports only folders above it in this table.

    cluster      the session, jobs, and files that tasks write
    storage      relations as Parquet files of fingerprints, terms, DataFrames, compaction
    partition    hash partitioning: which nodes, and the shuffle
    lookup       rows by key, filters, decoding, distinct counts
    evaluate     hyper-nodes from scratch: in one task, partitioned, or semi-naive on DataFrames
    ingest       files and facts in, and the fact delta that they come to
    maintain     one change: scheduling, incremental maintenance, net change
    query        queries in one task, or distributed
    compare      two versions: checksums, differences, digests
    streaming    Structured Streaming of files that arrive
    state        one version, and what can be asked of it
    engine       what users choose
    persistence  states as files of a store, and back
"""
