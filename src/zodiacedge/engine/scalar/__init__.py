"""The semantics of expressions, functions and aggregates, value by value: the definition for all engines.

errors          the evaluation error
text            functions on text, as SPARQL 1.1 defines them
host_functions  calls of registered functions, and their types in Arrow
expressions     expressions and comparisons
aggregates      the terms of a group to one term
"""
