"""The engine `spark`: the same language, the same maintenance, on a cluster or on the cores of one machine.

    session       one Spark session, and what it needs to start
    scratch       rows of a relation as Parquet files, and who removes them
    vocabulary    terms as 63-bit fingerprints, and the files that tell what they stand for
    jobs          one Spark job: what a task returns, what it fails with, how it is stopped
    place         where an engine works: all of these, and how nodes are evaluated
    grouping      work of many sizes, dealt out to tasks
    columns       files of fingerprints as tables of the embedded engine, and back, inside a task
    inputs        what atoms read, before a change and after it
    region        a task that brings a region of hyper-nodes up to date, on the embedded engine
    batch         facts on their way in and out
    sift          a task that finds out which of them really come and go
    merge         new terms among those that are known
    ingest        files read in parallel, from splits
    frames        relations as data frames
    bodies        rule bodies as plans on them; what looks at values is left over
    values        what looks at values, by the embedded engine's kernels
    compare       two versions side by side: what came, and what went
    nodes         one node on data frames: by a plan, in rounds
    maintained    the same from what came and went
    chain         several nodes by one plan
    dealing       how nodes fall into parts that never need each other
    dealt         rows dealt out to parts
    partitioned   nodes in such parts, each part in a task
    closure       a transitive node, made one that falls into parts
    components    a symmetric and transitive node, by its classes
    demand        which rows a small change may concern
    slices        rows of large relations, looked up by key
    small_change  the two together, round after round
    sizes         how much a region of nodes reads and derives
    ways          which of these ways a node takes, and why
    anew          one node from nothing, by its way
    reach         which nodes a change reaches
    standing      how a change stands: what each node has by now
    next_step     which nodes come next, and by which way
    compact       many small files into few
    attempt       one change: nodes in topological order, each by its way
    visible       what became visible in a change, and what is visible no more
    net           the same for whoever asks: counts and facts
    counting      how many facts several owners have, each once
    choice        which rows of a relation somebody asks for
    lookup        rows back to facts
    question      a query answered in one task
    large_query   one on more than a task holds
    digest        a sum of what all visible facts say
    apart         where two versions differ, by sums of their files
    diff          what one version has and another has not
    state         one version: names of files and counts; what can be asked of them
    engine        what users choose
    stored        rows as parts of a store, and back; tasks read and write its files
    keeping       what the engine offers to a store
    arrivals      files that arrive in a folder, in numbered batches
    noted         which files Spark noted as a batch, before it handed them over

The driver holds names of files and counts, never rows, but for those that a user asks for, and a limited
number that a small change may concern.
"""
