"""The facts of one predicate as a table: of Spark, Arrow, Polars or pandas.

predicates     the predicate that a user names, and the columns of its table
changed_facts  the facts that a change inserted or deleted
frame_stream   a streaming DataFrame, followed batch by batch
"""
