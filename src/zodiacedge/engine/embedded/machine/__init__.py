"""The rule machine: one compiled interpreter for the plans of a hyper-node.

sources      the tables that an atom reads, and their versions
assemble     assembly of plans to code: steps, columns, sources
cursors      kernels that enumerate the matches of an atom
product      kernels of plans whose heads are a product of two parts
fused_join   kernels that join the last atom of a rule and write its heads
interpreter  kernels of the semi-naive fixpoint
execute      execution of code, in slices of time
rerun        kernel that runs the code of a delta query again
"""
