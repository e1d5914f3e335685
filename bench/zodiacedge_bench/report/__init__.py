"""Results: tables, JSON, plots, targets.

report   all figures of a benchmark
tables   as text
plots    as PNG and SVG
targets  what we want to reach
"""
