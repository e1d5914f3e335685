"""Engines that evaluate programs; `reference` defines the correct result.

yield_point    points where a long computation lets other threads run
registry       functions and aggregates registered by the host
limits         limits of a change, and their meter
semantics      the meaning of expressions, functions and aggregates
api            the interface of an engine, and its laws
factset        facts as Python sets, with indexes
persistence    the interface between an engine and a store
query_lookups  lookups by prepared queries
state_compare  comparison of states by listing their facts
reference      evaluation on Python sets
embedded       evaluation by compiled kernels on tables of term ids, in one process
spark          evaluation on a Spark cluster
select         selection of an engine by name
"""
