"""The data pipeline around a store: streams of files into it, slices out of it.

file_journal    the files of each batch of a stream that needs no Spark
folder_stream   finds the files that arrive in a folder, in batches, without Spark
stream          applies each batch of files that arrives in a folder as one change, exactly once
publish_slices  writes one slice of a store for each device, in parallel
"""
