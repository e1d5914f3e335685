"""Data structures and helpers that know nothing of Datalog.

cow_dict       a copy-on-write map: copies share one table
cow_multimap   a copy-on-write map from keys to ordered sets
uninterrupted  steps that Ctrl-C does not cut in two
"""
