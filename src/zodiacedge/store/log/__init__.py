"""The write-ahead log: one record per version.

record_format  records as bytes: checksums, chains, torn records
record         the contents of a record: entry and facts
large_facts    facts of large changes, in files beside the log
local          records appended to a file, with group commit
object_store   records as objects, the first of a version wins
open_log       opens either for writing
"""
