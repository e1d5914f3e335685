"""Where the files of a store are, and how they are written.

base          the interface of a location, and how an address is read
parallel      calls that wait, several at a time
atomic_files  files that are written whole or not at all
lock          one writer at a time
local         a folder of this machine
object_store  a prefix of S3, Google's or Azure's object store
marker        the file that makes a location a store
"""
