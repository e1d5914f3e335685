"""N-Triples and N-Quads parsed by our own kernels, straight into the dictionary.

state               the descriptor that a scan reads and leaves
characters          UTF-8, labels and escapes
scan_line           one line: where its terms are, or why it is bad
datatypes           datatypes with values, by number
numbers             integers and doubles
datetimes           xsd:dateTime as microseconds
values              the value of a literal
intern              the terms of a line, interned
scan                the loop over lines
group_by_predicate  triples grouped by predicate and class
reader              files in, batches of rows out
"""
