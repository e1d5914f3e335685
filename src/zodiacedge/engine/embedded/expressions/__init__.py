"""Expressions, comparisons, aggregates and functions on term ids.

arithmetic       kernels of expressions, on a stack
host_functions   functions that Python computes, a batch at a time
text_vectorised  functions on text and dates, a column at a time, by Arrow
compile          expressions to postfix code
steps            plan steps that evaluate expressions
aggregate        bindings grouped and folded to rows
"""
