"""The engine `spark`: the same language and maintenance, on a cluster or on the cores of one machine.

The driver holds names of files and counts; rows only for results, and a limited number for a small change.
A folder imports only folders above it in this table.

    cluster      the session, jobs, and files that tasks write
    storage      relations as Parquet files of fingerprints, terms, DataFrames, compaction
    partition    hash partitioning: the shuffle, and merging of terms
    lookup       rows by key, filters, decoding, distinct counts
    evaluate     hyper-nodes from scratch: in one task, on hash partitions, or on DataFrames
    ingest       reading of files, batches of facts, and their fact delta
    maintain     one change: scheduling, incremental maintenance, net change
    query        queries in one task, or distributed
    compare      two versions: checksums, differences, digests
    streaming    Structured Streaming of arriving files
    state        one version: reading, querying and changing it
    engine       the engine and its options
    persistence  reading and writing states as files of a store
"""
