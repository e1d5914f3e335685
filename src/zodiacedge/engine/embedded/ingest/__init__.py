"""Facts on their way in and out, as rows of term ids.

batch     facts of the next change, and the fact delta that they come to
ntriples  the compiled parser of N-Triples and N-Quads
"""
