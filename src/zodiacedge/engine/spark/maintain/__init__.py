"""Maintenance: scheduling and evaluating one change, and its net change.

affected_nodes  nodes with an atom that matches an inserted or deleted fact
window_delta    the moments that enter and leave windows as the clock moves
change_state    the version before a change, and the segments of each node so far
demand          demand analysis: the rows that maintaining a small change may read
slice_search    looking up those rows by key, in rounds
stamped_rows    the rows that maintenance by stamps looks up, before and after a change
stamped_joins   joins of rule bodies on them
stamped_task    maintenance of a recursive node by the stamps of its facts
by_stamps       its files, its job and its result
incremental     incremental maintenance of a node by delta plans
layers          a recomputed segment as a layer on the old one
net_change      the facts that became visible or are visible no more
scheduler       the nodes of the next step, and its strategy
propagate       propagation of a change, step by step
"""
