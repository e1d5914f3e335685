"""The Delta table: facts as Parquet files, and commits.

commit_info    the metadata of a commit
parquet_files  partitions as Parquet files, named by their content
file_changes   files that a commit adds and removes
delta_table    commits, snapshots, reading and writing
pending_flush  what the table lacks of a version, captured
"""
