"""The time of a knowledge base.

clock       the time as a fact, ticks, and which argument of a predicate is its time
hidden      net changes without the facts of hidden rules
retention   what `@keep` declares, and the facts that a change forgets for it
rule_forms  the form of rules for an engine
"""
