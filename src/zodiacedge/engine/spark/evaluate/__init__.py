"""Hyper-nodes evaluated from scratch, and the strategies for it.

rule_plan             a rule body as a plan on DataFrames
expressions           values, comparisons and aggregates in a plan, by the embedded kernels
seminaive             a node by plans: once, or semi-naive round by round
pipelined             neighbouring nodes in one plan
transitive_closure    a closure as a node that can be partitioned
connected_components  a symmetric-transitive node by its classes
inputs                what atoms read, before and after a change
embedded_task         a region of nodes in one task, by the embedded engine
partitioned           nodes partition by partition, each in a task
strategy              which of these a node takes, and why
recompute             one node from scratch by its strategy
"""
