"""A stream of the files that arrive in a folder, by Spark Structured Streaming.

checkpoint   the files of a batch, read from Spark's checkpoint
file_stream  the stream: numbered batches of files
"""
