"""An index of a file of terms by fingerprint: the same terms once more, sorted, so that a few are read alone.

It is a file of numbers and of texts: the first fingerprint of each block, the entries of all terms (their
fingerprint, kind, bits, and where their text begins), then the texts, one after the other. A look-up reads
the first part, the blocks of the fingerprints, and the texts of those that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from zodiacedge.engine.spark.cluster.task_files import count_read, located
from zodiacedge.engine.spark.storage.files import DataFile

if TYPE_CHECKING:
    from pyarrow import NativeFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import Folder

# The column of fingerprints: the key of this index among those of a file.
COLUMN = 0
# Files with fewer terms are read as quickly without an index.
_LEAST = 1 << 12
_TOGETHER = 1 << 6
_BYTES = 8
_ENTRY = 4
# Of more fingerprints nearly all blocks are read: the file itself is quicker.
_SHARE = 2


def write_term_index(folder: Folder, terms: pa.Table) -> dict[int, DataFile]:
    """Write the index of terms that are sorted by fingerprint; return it by its column."""
    rows = len(terms)
    if rows < _LEAST:
        return {}
    texts = terms["text"].combine_chunks()
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + rows + 1]
    entries = np.zeros((rows + 1, _ENTRY), np.int64)
    for column, name in enumerate(("id", "kind", "bits")):
        entries[:rows, column] = terms[name].to_numpy()
    entries[:, -1] = offsets - offsets[0]
    path = folder.new_file("term-index")
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        stream.write(np.ascontiguousarray(entries[:rows:_TOGETHER, 0]))
        stream.write(entries)
        data = texts.buffers()[2]
        if data is not None:
            stream.write(data.slice(int(offsets[0]), int(offsets[-1] - offsets[0])))
    return {COLUMN: DataFile(path, rows)}


def serves(file: DataFile, keys: int) -> bool:
    """Whether so many terms are looked up by an index of their file."""
    return COLUMN in file.indexes and keys * _TOGETHER * _SHARE <= file.rows


def look_up(file: DataFile, keys: Keys, schema: pa.Schema) -> pa.Table:
    """Return the terms of sorted fingerprints, those that are there."""
    index = file.indexes[COLUMN]
    found: list[Keys] = [np.zeros((0, _ENTRY), np.int64)]
    texts: list[bytes] = []
    system, inner_path = located(index.path)
    with system.open_input_file(inner_path) as source:
        count = -(-index.rows // _TOGETHER)
        firsts = np.frombuffer(source.read_at(count * _BYTES, 0), np.int64)
        blocks = np.searchsorted(firsts, keys, "right") - 1
        first_text = count * _BYTES + (index.rows + 1) * _ENTRY * _BYTES
        for block in np.unique(blocks[blocks >= 0]).tolist():
            entries = _entries(source, index.rows, block)
            at = np.flatnonzero(np.isin(entries[:-1, 0], keys[blocks == block]))
            found.append(entries[at])
            for begin, end in zip(entries[at, -1].tolist(), entries[at + 1, -1].tolist(), strict=True):
                texts.append(source.read_at(end - begin, first_text + begin) if end > begin else b"")
    ids, kinds, bits, _ = np.concatenate(found).T
    return pa.table([ids, kinds.astype(np.int8), bits, pa.array(texts, pa.binary())], schema=schema)


def _entries(source: NativeFile, rows: int, block: int) -> Keys:
    """Return the entries of a block, and the one behind it, where its last text ends."""
    first = block * _TOGETHER
    count = min(_TOGETHER, rows - first)
    count_read(count)
    at = (-(-rows // _TOGETHER) + first * _ENTRY) * _BYTES
    entries: Keys = np.frombuffer(source.read_at((count + 1) * _ENTRY * _BYTES, at), np.int64)
    return entries.reshape(count + 1, _ENTRY)
