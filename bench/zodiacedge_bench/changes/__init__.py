"""Edits of rules and facts, timed beside an evaluation from scratch.

edits       an edit, and the time of its commit
experiment  edits beside an evaluation from scratch
paper       the paper's edits
lubm        edits of LUBM
graphs      edges of closures
churn       thousands of edits in a row
"""
