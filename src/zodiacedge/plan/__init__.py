"""Plans of rules: an order of the body's conjuncts, for the initial evaluation and for each delta.

    algebra      the steps of a plan, as values
    order        which conjunct comes next
    variants     the plans of one rule: initial, and one per position that a delta may enter at
    product      plans whose heads are all pairs of two independent parts
    partition    hash partitioning of nodes: by which arguments
    placement    hash placement of facts by the keys of joins, for rounds on partitions
    measurement  the rows and seconds of a run, beside the estimates
    show         plans as text

Plans are values; no rule is ever edited. Engines turn plans into whatever they run.
"""
