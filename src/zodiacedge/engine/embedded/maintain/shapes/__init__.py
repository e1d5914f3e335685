"""Maintenance of nodes whose rules have a certain shape, by what is known of that shape.

projection   a node that copies a relation
closure      a transitive closure, by searches along its steps
inverses     copies and inverses in a circle: rows are looked up where they may come from
equivalence  a symmetric-transitive node, class by class
windowed     a rule that reads windows: its bindings are counted by group
"""
