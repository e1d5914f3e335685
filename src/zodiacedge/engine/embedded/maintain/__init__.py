"""Incremental maintenance of hyper-nodes, and the choice between maintaining and recomputing.

delta_query       rule bodies with a delta at one atom, planned once and kept
rule_profile      properties of a node's rules that no fact changes
delta_sets        union, difference and intersection of sets of facts
node_facts        the facts of one node under change, and the instances that derive them
backward_forward  deletion in recursive nodes: facts without a well-founded proof
dred              deletion in recursive nodes: delete and rederive
incremental       one node maintained: classify the delta, delete, insert semi-naively
shapes            nodes of a certain shape: projections, transitive closures, equivalences
patch_segment     an old segment patched to a recomputed one
merge_split       segments of nodes that merge, split or lose rules
strategy          maintain or recompute, and when to give up: the elastic choice
windows           the moments that enter and leave windows as the clock moves
windowed_rows     the rows that enter and leave a window, found once for all nodes that read them
transition        the old version, the next rules and the result of a change
propagate         a whole change, node by node in topological order
"""
