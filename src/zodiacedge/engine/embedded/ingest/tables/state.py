"""The descriptor of a reader of CSV and TSV: offsets of its fields, which a scan reads and writes.

The host creates it, and reads it whenever the kernel returns.
"""

from __future__ import annotations

C_BUFFER = 0  # address of the bytes
C_AT = 1  # offset of the next line
C_STOP = 2  # behind the last line feed
C_LINE = 3  # the number of the next line
C_SEPARATOR = 4  # the byte between cells
C_QUOTING = 5  # whether cells may be in quotes
C_WIDTH = 6  # cells of a line
C_SPANS = 7  # address of the spans of the line's cells
C_SCRATCH = 8  # address of bytes for cells with doubled quotes
C_SCRATCH_SIZE = 9
C_OUT = 10  # address of the rows
C_OUT_COUNT = 11
C_OUT_CAPACITY = 12
C_LATER = 13  # address of the cells left to the host
C_LATER_COUNT = 14
C_LATER_CAPACITY = 15
C_LATER_TEXT = 16  # address of their bytes
C_LATER_END = 17
C_LATER_ROOM = 18
C_WANTED = 19  # bytes of text that did not fit
STATE_WORDS = 20

# The span of a cell: its start, its end, and whether it has doubled quotes.
SPAN_WORDS = 3
# A cell left to the host: its place in the rows, and the start and end of its text.
LATER_WORDS = 3

# Why the kernel stopped.
FINISHED = 0
NEEDS_TERMS = 1
NEEDS_TEXT = 2
FULL = 3  # of rows, or of cells left to the host
HARD = 4  # the next line is for the host: it is bad, or its record has more lines
