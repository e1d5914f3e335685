"""Facts in and out of files: RDF formats, CSV, Parquet, Arrow, JSON lines."""
