"""The evaluation of a hyper-node from scratch, of queries, and of measured plans.

closure_kernels  kernels of transitive closures and equivalence classes
chain_kernels    kernels of compositions of relations, as sets of bits
chains           nodes whose rules compose binary relations
modules          modular materialisation: an algorithm for each known shape of a node
copies           nodes that copy relations, many at a time
exchange         facts that two threads derive in rounds
two_threads      one node on two threads, by partitioned rows
merged_classes   the members of a class of several owners in one table
seminaive        the semi-naive fixpoint of a hyper-node
answer_table     many answers as an Arrow table
query            queries, prepared once and evaluated often
measure          the rows of a plan after each step, beside its estimates
"""
