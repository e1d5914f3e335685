"""How a rule is evaluated: an order of its body's conjuncts, for the rule as a whole and for each delta.

    algebra    the steps of a plan, as values
    order      which conjunct comes next
    variants   the plans of one rule: initial, and one per position that a delta may enter at
    partition  whether a node's fixpoint falls apart, and by which arguments
    show       plans as text

Plans are values; no rule is ever edited. Engines turn plans into whatever they run.
"""
