"""The Delta table: facts as Parquet files, and commits.

commit_info    the metadata of a commit
parquet_files  writes and reads partitions as Parquet files, named by their content
file_changes   the files that a commit adds and removes
delta_table    reads and writes commits
pending_flush  the captured changes that the table lacks
"""
