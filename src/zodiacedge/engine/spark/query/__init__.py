"""Queries on Spark.

one_task     a query in one task, by the embedded engine
bindings     bindings of a query's variables in the driver, and joins of them
first_rows   the first rows that an atom matches
followed     answers from these rows, followed through the other atoms by look-ups
distributed  a query on more rows than fit one task
limited      a query with a limit on such rows: followed, in waves of files, or distributed
key_lookups  lookups by key, for questions about single facts
by_terms     explicit facts about subjects, and the earliest facts that have a moment
"""
