"""The meaning of expressions, functions and aggregates, one value at a time: the definition for all engines.

errors          an expression without a value
text            functions on text, as SPARQL 1.1 defines them
host_functions  calls of registered functions, and their types in Arrow
expressions     expressions and comparisons
aggregates      a group's terms to one term
"""
