"""The embedded engine: compiled kernels on columns of term ids, in one process, without a JVM.

A folder imports only folders above it in this table; read them in this order.

    types        names of array types
    kernels      Numba compilation, its cache, raw memory, layouts of descriptors, hashing
    terms        the dictionary: terms as dense 32-bit ids, and as fingerprints
    storage      tables, hash indexes, overlays; explicit facts and segments as a database
    expressions  arithmetic, text, aggregates and host functions on ids
    ingest       facts in: batches of rows, the N-Triples parser
    machine      the rule machine: plans assembled to code, and the interpreter that runs it
    evaluate     one hyper-node from scratch: semi-naive, two threads, modules; queries
    versions     the next version beside the old one, and the difference between them
    maintain     incremental maintenance: delta queries, Backward/Forward, DRed, strategies
    lookup       lookups by key, for questions about single facts
    prepare      hash sets and indexes for changes after a load
    memory_use   what a state holds in memory, and what could be given back
    moment_queues  explicit rows in the order of a moment, for what is to be forgotten
    state        one version of a knowledge base, and changes of it
    engine       the engine itself: an empty state, and states from scratch
    persistence  states as columns of a store, and back
    warm_up      compiles every kernel beforehand
"""
