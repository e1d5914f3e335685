"""Hash partitioning of relations by an argument that rules hand down.

analysis     which argument partitions the relations of some nodes
shuffle      the shuffle: files in, a block per partition out
merge_terms  new terms merged into those that are known
"""
