"""Tables of term ids, and the database of explicit facts and segments.

hash_index           kernels of a table's hash set and hash indexes: find, insert, link, grow
delete_rows          kernels that delete rows
table                a table: rows, a hash set of them, indexes built on demand
row_algebra          set operations on arrays of rows
overlay              the rows that a change inserts into a table and deletes from it
relation             relations, and the layout of rdf:type facts in tables
revisions            which tables of a segment changed since a store wrote them
arrangement          multisets of terms by group, in order, for aggregates of windows
arrangement_kernels  the merge of their sorted runs, weights and order statistics
exact_sums           numbers as digits whose sums do not overflow
segment              the tables of a hyper-node, or of the explicit facts
database             explicit facts and segments behind one view per relation
reclaim              frees terms and memory that nothing uses any more
"""
