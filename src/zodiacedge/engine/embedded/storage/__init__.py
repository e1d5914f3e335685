"""Rows of term ids, and where the facts of a state live.

hash_index   kernels on one table: find, insert, index, grow
delete_rows  kernels that delete rows and close the gaps in indexes
table        a table: rows, a hash set of them, indexes built on demand
row_algebra  set operations on arrays of rows
revisions    which tables of a segment changed
overlay      what a table gains and loses in a change under way
database     relations, segments and explicit facts behind one view per relation
"""
