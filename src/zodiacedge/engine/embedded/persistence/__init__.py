"""States of the embedded engine in a store.

columns  ids to Arrow columns of readable terms, and back
adapter  the interface of `engine.persistence`: states as partitions, and back
"""
