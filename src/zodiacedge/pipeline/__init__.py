"""The data pipeline around a store: streams of files into it, slices out of it.

stream          applies each batch of files that arrives in a folder as one change, exactly once
publish_slices  writes one slice of a store for each device, in parallel
"""
