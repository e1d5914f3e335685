"""Data structures and helpers that know nothing of Datalog.

cow_dict       a copy-on-write map: copies share one table
cow_multimap   a copy-on-write map from keys to ordered sets
html           small pieces of HTML for notebooks
uninterrupted  a block of code that Ctrl-C does not interrupt
"""
