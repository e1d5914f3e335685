"""The moments among the terms of a file in their order: a file that is written with it.

It is a file of numbers: the first moment of each block, then the blocks of microseconds and fingerprints, one
after the other. A look-up of a range reads the first part and the blocks that the range meets; files whose
span does not meet it are not opened.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.spark.cluster.task_files import count_read, located
from zodiacedge.engine.spark.storage.files import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyarrow import NativeFile

    from zodiacedge.engine.embedded.types import Keys
    from zodiacedge.engine.spark.storage.files import Folder

_TOGETHER = 512
_BYTES = 8
_ENTRY = 2


class Moments(NamedTuple):
    """Moments in ascending order: their microseconds and their fingerprints."""

    micros: Keys
    keys: Keys

    @classmethod
    def joined(cls, pieces: Iterable[Moments]) -> Moments:
        """Return the moments of several files in ascending order, each once."""
        listed = [cls(np.zeros(0, np.int64), np.zeros(0, np.int64)), *pieces]
        micros, keys = (np.concatenate(column) for column in zip(*listed, strict=True))
        keys, first = np.unique(keys, return_index=True)
        order = np.argsort(micros[first], kind="stable")
        return cls(micros[first][order], keys[order])


def write_moments(folder: Folder, terms: pa.Table) -> tuple[DataFile | None, tuple[int, int] | None]:
    """Write the moments among terms; return their file, if there are some, and their span."""
    chosen = terms["kind"].to_numpy() == L.K_MOMENT
    if not chosen.any():
        return None, None
    micros, keys = terms["bits"].to_numpy()[chosen], terms["id"].to_numpy()[chosen]
    order = np.argsort(micros, kind="stable")
    entries = np.stack((micros[order], keys[order]), axis=1)
    path = folder.new_file("moments")
    system, inner_path = located(path)
    with system.open_output_stream(inner_path) as stream:
        stream.write(np.ascontiguousarray(entries[::_TOGETHER, 0]))
        stream.write(entries)
    return DataFile(path, len(entries)), (int(entries[0, 0]), int(entries[-1, 0]))


def most_between(files: Iterable[DataFile], after: int, up_to: int) -> int:
    """Return how many moments of files there are at most after one time and up to another."""
    total = 0
    for file in _meeting(files, after, up_to):
        with _opened(file) as (source, rows):
            first, end = _blocks(source, rows, after, up_to)
        total += min((end - first) * _TOGETHER, rows)
    return total


def between(files: Iterable[DataFile], after: int, up_to: int) -> Moments:
    """Return the moments of files of terms after one time and up to another, in microseconds."""
    return Moments.joined(_between(file, after, up_to) for file in _meeting(files, after, up_to))


def first_after(files: Iterable[DataFile], moment: int) -> int | None:
    """Return the first moment of files of terms after a time."""
    first: int | None = None
    for file in files:
        if file.span is None or file.span[1] <= moment:
            continue
        here = file.span[0]
        if here <= moment:
            with _opened(file) as (source, rows):
                block = _blocks(source, rows, moment, moment)[0]
                # The last of a block may be earlier, then it is the first of the next.
                micros = _entries(source, rows, block, block + 2)[:, 0]
            here = int(micros[np.searchsorted(micros, moment, "right")])
        first = here if first is None else min(first, here)
    return first


def _meeting(files: Iterable[DataFile], after: int, up_to: int) -> Iterable[DataFile]:
    return (file for file in files if file.span and file.span[0] <= up_to and file.span[1] > after)


def _between(file: DataFile, after: int, up_to: int) -> Moments:
    with _opened(file) as (source, rows):
        entries = _entries(source, rows, *_blocks(source, rows, after, up_to))
    first, end = np.searchsorted(entries[:, 0], (after, up_to), "right")
    return Moments(*np.ascontiguousarray(entries[first:end].T))


@contextmanager
def _opened(file: DataFile) -> Iterator[tuple[NativeFile, int]]:
    """Open the moments of a file of terms; yield their file and their number."""
    if file.moments is None:
        raise AssertionError(file.path)
    system, inner_path = located(file.moments.path)
    with system.open_input_file(inner_path) as source:
        yield source, file.moments.rows


def _blocks(source: NativeFile, rows: int, after: int, up_to: int) -> tuple[int, int]:
    """Return the first of the blocks that may have moments of a range, and the one behind the last."""
    count = -(-rows // _TOGETHER)
    firsts = np.frombuffer(source.read_at(count * _BYTES, 0), np.int64)
    first, end = np.searchsorted(firsts, (after, up_to), "right")
    return max(int(first) - 1, 0), int(end)


def _entries(source: NativeFile, rows: int, first: int, end: int) -> Keys:
    begin, stop = first * _TOGETHER, min(end * _TOGETHER, rows)
    count = max(stop - begin, 0)
    count_read(count)
    at = (-(-rows // _TOGETHER) + begin * _ENTRY) * _BYTES
    entries: Keys = np.frombuffer(source.read_at(count * _ENTRY * _BYTES, at), np.int64).reshape(
        count, _ENTRY
    )
    return entries
