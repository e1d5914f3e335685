"""One hyper-node evaluated from scratch, queries, and measured plans.

closure_kernels  kernels of transitive closures and equivalence classes
modules          nodes of a known shape, by an algorithm for it: modular materialisation
two_threads      one node on two threads, by partitioned rows
seminaive        the semi-naive fixpoint of a hyper-node
query            queries, prepared once and answered often
measure          the rows of a plan after each step, beside its estimates
"""
