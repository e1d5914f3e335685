"""One module per file format.

cells           terms as cells of text
lines           numbered lines, and the input of every reader
tabular         CSV and TSV
jsonl           JSON lines
rdf             RDF in, by pyoxigraph
rdftext         N-Triples and Turtle out
columns         Arrow columns as columns of terms
arrow           Parquet and Arrow
arrow_rows      rows of terms in Arrow tables
csv_columns     lines of CSV from Arrow tables
column_mapping  the columns of a table as terms, and back
"""
