"""The semantics of expressions, functions and aggregates on single values: the definition for all engines.

errors          the evaluation error
text            functions on text, as SPARQL 1.1 defines them
host_functions  calls of registered functions and aggregates, and their Arrow types
expressions     expressions and comparisons
aggregates      aggregates of the terms of a group
"""
