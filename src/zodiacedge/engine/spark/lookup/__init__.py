"""Rows found by key, filtered, decoded and counted.

row_filter      which rows of a relation are asked for
count_distinct  distinct facts of several owners
decode          fingerprints back to facts
by_key          rows of large relations by key
"""
