"""Tables by columns: cells and Arrow columns become term ids without a Python object per row.

state          the descriptor of a reader of CSV and TSV
cells          kernels: a cell to its term
scan           the loop over lines of CSV and TSV
tabular        files of CSV and TSV
arrow_columns  columns of Arrow tables
"""
