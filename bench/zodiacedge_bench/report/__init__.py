"""Results: tables, JSON, plots, targets.

report   all figures of a benchmark
tables   tables as text
plots    plots as PNG and SVG
targets  targets and verdicts
"""
