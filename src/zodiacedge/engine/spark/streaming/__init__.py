"""Files that arrive in a folder, by Structured Streaming.

checkpoint   files of a batch, from Spark's checkpoint
file_stream  numbered batches of files
"""
