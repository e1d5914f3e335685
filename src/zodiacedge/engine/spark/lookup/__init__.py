"""Lookup of rows by key, filters, decoding and counting.

row_filter      filters on the rows of a relation
count_distinct  the number of distinct facts of several owners
decode          fingerprints back to facts
by_key          rows of large relations by key
"""
