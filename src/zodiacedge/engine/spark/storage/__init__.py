"""Relations, terms and versions as Parquet files.

files            data files, signed files, segments, the scratch folder
terms            fingerprints of terms, and the files that decode them
workspace        resources that all versions share: jobs, scratch folder, options
bin_packing      inputs of many sizes packed into tasks
dataframes       relations as DataFrames, and back to files
embedded_tables  files as tables of the embedded engine, inside a task
compaction       many small files to few
version          one version as data
"""
