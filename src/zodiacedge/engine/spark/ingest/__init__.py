"""Reading of facts.

fact_delta  explicit facts that a change really inserts and deletes
batch       facts of the next change
read_files  files read in parallel, by splits
"""
