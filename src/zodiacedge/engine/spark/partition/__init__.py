"""Hash partitioning of relations by an argument that rules pass on from body to head (`plan.partition`).

shuffle      the shuffle: files in, a block per partition out
merge_terms  merging new terms into the known ones, joining rows with their terms
"""
