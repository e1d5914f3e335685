"""The evaluation of a hyper-node from scratch, of queries, and of measured plans.

closure_kernels  kernels of transitive closures and equivalence classes
modules          modular materialisation: an algorithm for each known shape of a node
two_threads      one node on two threads, by partitioned rows
seminaive        the semi-naive fixpoint of a hyper-node
query            queries, prepared once and evaluated often
measure          the rows of a plan after each step, beside its estimates
"""
