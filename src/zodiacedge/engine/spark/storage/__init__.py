"""Relations, terms and versions as Parquet files.

scratch_owner    owners of scratch folders, and removal of those of killed processes
files            data files, signed files, segments, the scratch folder
row_order        the order of the rows of a file, in which an index has little to say
indexes          indexes of files: in which blocks of rows a term is
blocks           reads these blocks alone
moments          the moments among terms in their order
terms            fingerprints of terms, and the files that decode them
workspace        resources shared by all versions: jobs, scratch folder, options
bin_packing      inputs of different sizes packed into tasks
dataframes       conversion of relations from files to DataFrames, and back
embedded_tables  conversion of files to tables of the embedded engine, inside a task
compaction       merging of small files
windows          the moments that are in windows around the clock
version          the data of one version
"""
