"""States of the embedded engine in a store.

columns  codec of term ids: Arrow columns of readable terms
adapter  implementation of `engine.persistence`: states as partitions, and back
"""
