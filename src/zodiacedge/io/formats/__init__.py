"""One module per file format.

cells    terms as cells of text
lines    numbered lines, and the input of every reader
tabular  CSV and TSV
jsonl    JSON lines
rdf      RDF in, by pyoxigraph
rdftext  N-Triples and Turtle out
arrow    Parquet and Arrow
"""
