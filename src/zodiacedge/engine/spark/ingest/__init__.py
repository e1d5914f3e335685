"""Ingestion of facts.

fact_delta  the effective delta of a change to the explicit facts
fact_split  facts taken out of files, by the fingerprints in a column
batch       batches of facts to insert or delete
read_files  reading files in parallel, by splits
read_frame  reading DataFrames of users, by partitions
"""
