"""Facts that a change inserts or deletes, as rows of term ids.

batch     facts of the next change, and their effective delta on the database
tables    CSV, TSV and Arrow columns
ntriples  the compiled parser of N-Triples and N-Quads
"""
