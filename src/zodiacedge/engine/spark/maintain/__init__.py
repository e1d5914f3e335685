"""One change: which nodes, by which strategy, and the net change.

affected_nodes  nodes with an atom that matches a fact inserted or deleted
change_state    the version before, and what each node has so far
demand          demand analysis: the rows that a small change may concern
slice_search    those rows looked up by key, round by round
incremental     a node maintained by delta plans
net_change      the rows that became visible or are visible no more
scheduler       which nodes come next, and by which strategy
propagate       the change, step by step
"""
