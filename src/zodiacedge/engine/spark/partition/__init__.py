"""Hash partitioning of relations by an argument that rules hand down (`plan.partition` finds it).

shuffle      the shuffle: files in, a block per partition out
merge_terms  new terms merged into those that are known
"""
