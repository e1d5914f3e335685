"""Evaluation of hyper-nodes from scratch: strategies, and the choice between them.

rule_plan           rule bodies as plans on DataFrames
expressions         values, comparisons and aggregates in a plan, by the embedded kernels
seminaive           a node by plans: one plan, or a plan per semi-naive round
inputs              the files that atoms read, before and after a change
embedded_task       a region of nodes in one task, by the embedded engine
task_output         the segments of a region, written as files
partitioned         nodes by hash partition, one task per partition
transitive_closure  transitive closure, rewritten to linear recursion that can be partitioned
round_task          a semi-naive round on one hash partition, by the embedded kernels
rounds              semi-naive rounds on hash partitions that derive facts of each other
strategy            the choice of a node's strategy
"""
