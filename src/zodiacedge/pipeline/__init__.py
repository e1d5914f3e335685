"""The data pipeline around a store: files in by streams, slices out to devices.

stream          files that arrive in a folder, each batch one change, exactly once
publish_slices  one slice of a store for each device, in parallel
"""
