"""The rule machine: one compiled interpreter for the plans of a hyper-node.

sources      tables that an atom reads, and in which version
assemble     plans to code: steps, columns, sources
cursors      matches of one atom, as a cursor over its sources
fused_join   the last atom of a rule, joined in one loop that writes heads
interpreter  the fixpoint loop
execute      runs assembled code, a slice of time at a time
rerun        runs code again that was assembled for an earlier change
"""
