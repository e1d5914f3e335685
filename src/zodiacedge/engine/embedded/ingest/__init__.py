"""Facts on their way in and out, as rows of term ids.

batch     facts of the next change, and their fact delta on the database
ntriples  the compiled parser of N-Triples and N-Quads
"""
