"""Lookup of rows by key, row filters, decoding and counting.

row_filter      filters on the rows of a relation
count_distinct  the number of distinct facts of several owners
decode          decoding of fingerprints to facts
table           the facts of a predicate as a DataFrame of the user
matching        the rows of a file that have some values
by_key          lookup of rows of large relations by key
"""
