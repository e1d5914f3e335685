"""Hyper-nodes evaluated from scratch, and the strategies for it.

rule_plan           a rule body as a plan on DataFrames
expressions         values, comparisons and aggregates in a plan, by the embedded kernels
seminaive           a node by plans: once, or semi-naive round by round
inputs              what atoms read, before and after a change
embedded_task       a region of nodes in one task, by the embedded engine
task_output         the segments of a region written as files
partitioned         nodes partition by partition, each in a task
transitive_closure  a closure, symmetric or not, as linear recursion that can be partitioned
strategy            which of these a node takes, and why
"""
