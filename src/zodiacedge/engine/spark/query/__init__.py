"""Queries on Spark.

one_task     a query in one task, by the embedded engine
distributed  a query on more rows than fit one task
key_lookups  lookups by key, for questions about single facts
by_terms     explicit facts about subjects, and the earliest facts that have a moment
"""
