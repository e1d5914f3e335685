"""Data structures and helpers that know nothing of Datalog.

cow_dict             a copy-on-write map: copies share one table
cow_multimap         a copy-on-write map from keys to ordered sets
freed_memory         memory that allocators keep, given back to the system
gzipped              gzip whose expansion is bounded
html                 pages of HTML from files, tables for notebooks
json_text            values as JSON, with texts inside that are JSON already
linear_matching      regular expressions in time linear in the text
one_line             texts of people on one line of a terminal
regular_expressions  the regular expressions of XPath and SPARQL
spelling             similar names in a large vocabulary, for suggestions
uninterrupted        a block of code that Ctrl-C does not interrupt
"""
