"""Locations of a store: a folder, or a prefix of an object store.

base          the interface of a location, and the parser of addresses
parallel      runs blocking calls in threads
atomic_files  writes files atomically and durably
lock          the lock of the only writer
local         a folder of this machine
object_store  a prefix of S3, Google Cloud Storage or Azure
marker        the file that marks a location as a store
"""
