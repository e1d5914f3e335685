"""One change: which nodes, by which strategy, and the net change.

compare         two versions of a relation, on DataFrames
incremental     a node maintained by plans
demand          demand analysis: the rows that a small change may concern
slice_search    those rows looked up by key, round by round
visible         rows that became visible or are visible no more
net_change      the net change as counts and facts
affected_nodes  nodes with an atom that matches a change
change_state    what each node has so far
estimates       rows that a region reads and derives
scheduler       which nodes come next, and by which strategy
propagate       the change, step by step
"""
