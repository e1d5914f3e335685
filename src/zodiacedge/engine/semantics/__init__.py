"""The semantics of expressions, functions and aggregates on single values: the definition for all engines.

errors          the evaluation error
text            functions on text, as SPARQL 1.1 defines them
term_functions  functions on terms of every kind
host_functions  calls of registered functions and aggregates, and their Arrow types
time            arithmetic on moments and lengths of time
expressions     expressions and comparisons
aggregates      aggregates of the terms of a group
"""
