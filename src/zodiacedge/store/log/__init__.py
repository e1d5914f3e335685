"""The write-ahead log: one record per version.

record_format  reads log files: headers, checksums, chains, torn records
record         the payload of a record: entry and facts
large_facts    facts of large changes, in files beside the log
local          appends records to a file, with group commit
object_store   puts each record as an object; the first writer of a version wins
open_log       opens either log for writing
"""
