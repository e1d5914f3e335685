"""Engines that evaluate programs; `reference` is the definition of right.

yield_point    where a long computation lets other threads in
registry       functions and aggregates of the host
limits         what one change may use up
scalar         the meaning of expressions, functions and aggregates
api            the interface that every engine has, and its laws
factset        facts as Python sets, indexed by predicate
persistence    what an engine offers to a store
state_compare  states compared by listing their facts
reference      evaluation on Python sets
embedded       compiled kernels on columns of term ids, in one process
spark          the same on a cluster
select         the engines by name
"""
