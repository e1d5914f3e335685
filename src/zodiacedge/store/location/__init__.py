"""Locations of a store: a folder, or a prefix of an object store.

parallel      runs blocking calls in threads
atomic_files  writes files atomically and durably
lock          the lock of the only writer
local         a folder of this machine
object_store  a prefix of S3, Google Cloud Storage or Azure
base          either of them, and the parser of addresses
marker        the file that marks a location as a store
"""
