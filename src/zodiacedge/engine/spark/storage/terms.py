"""Fingerprints of terms, and the files that map fingerprints back to terms.

A fingerprint is a hash, equal in every process, so that processes share no counter. A collision would make
answers wrong: new terms are compared with known ones, and a collision fails the change. Terms are stored as
in the embedded engine's dictionary: a kind, and the bits of a number or a text. A file is sorted by
fingerprint, so that a lookup reads few row groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.fingerprints import MOST_BITS, fingerprints
from zodiacedge.engine.spark.storage.blocks import BlockReader
from zodiacedge.engine.spark.storage.files import DataFile, Folder, read_among, read_between, read_table
from zodiacedge.engine.spark.storage.indexes import write_sorted_index
from zodiacedge.engine.spark.storage.moments import write_moments
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.printer import format_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.embedded.types import Ids, Keys
    from zodiacedge.terms import Term


SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.int8()), ("bits", pa.int64()), ("text", pa.binary())])
_ID = 0
# At most so many new terms are compared with the known ones in one task.
FEW = 256


class Hashing(NamedTuple):
    """The parameters of the hash function of fingerprints."""

    seed: int = 0
    bits: int = MOST_BITS

    def keys(self, dictionary: Dictionary, first: int = 0) -> Keys:
        """Return the fingerprints of a dictionary's terms with ids from `first`."""
        return fingerprints(dictionary, first, seed=self.seed, bits=self.bits)

    def key(self, term: Term) -> int:
        """Return the fingerprint of a term."""
        return self.keys_of((term,))[term]

    def keys_of(self, terms: Iterable[Term]) -> dict[Term, int]:
        """Return the fingerprints of terms."""
        distinct_terms = list(dict.fromkeys(terms))
        dictionary = Dictionary()
        ids = dictionary.encode_all(distinct_terms)
        keys = self.keys(dictionary)
        return dict(zip(distinct_terms, keys[ids].tolist(), strict=True)) if distinct_terms else {}

    def ranges(self, count: int) -> list[FingerprintRange]:
        """Divide the range of all fingerprints into `count` ranges of equal length."""
        ends = [(number << self.bits) // count for number in range(count + 1)]
        return [FingerprintRange(first, end - 1) for first, end in pairwise(ends)]


class FingerprintRange(NamedTuple):
    """A range of fingerprints, both ends included."""

    first: int
    last: int


@dataclass(frozen=True)
class TermFiles:
    """The files of all known terms; a fingerprint has the same term in every file."""

    parts: tuple[DataFile, ...] = ()

    @property
    def rows(self) -> int:
        """The number of entries in all files."""
        return sum(file.rows for file in self.parts)

    def with_files(self, *files: DataFile) -> TermFiles:
        """Return these files and others, each once; a file without entries is left out."""
        return TermFiles(tuple(dict.fromkeys((*self.parts, *(file for file in files if file.rows)))))

    def read(self, keys: Keys | None = None, within: FingerprintRange | None = None) -> pa.Table:
        """Return the entries of the given fingerprints, or all, with duplicates across files.

        `within` restricts the read to a range of fingerprints.
        """
        tables = [_entries(file, keys, within) for file in self.parts]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def decode(self, keys: Keys) -> dict[int, Term]:
        """Return the terms of fingerprints."""
        return decoded(self.read(np.unique(keys)))


def columns_of(dictionary: Dictionary, hashing: Hashing, first: int = 0) -> pa.Table:
    """Return the terms of a dictionary with ids from `first` as a table."""
    keys = hashing.keys(dictionary, first)
    kinds = dictionary.kinds[first:]
    texts = kinds <= L.K_OTHER
    ids = np.flatnonzero(texts).astype(np.int32) + np.int32(first)
    ends, data = dictionary.texts(ids)
    # A number has an empty text.
    lengths = np.zeros(len(kinds), np.int32)
    lengths[texts] = np.diff(ends)
    offsets = np.zeros(len(kinds) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = pa.BinaryArray.from_buffers(
        pa.binary(), len(kinds), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    bits = np.where(texts, 0, dictionary.payloads[first:])
    return pa.table([pa.array(keys), pa.array(kinds), pa.array(bits), text], schema=SCHEMA)


def entries_of(terms: Iterable[Term], hashing: Hashing) -> pa.Table:
    """Return terms as a table, each once."""
    dictionary = Dictionary()
    dictionary.encode_all(list(dict.fromkeys(terms)))
    return columns_of(dictionary, hashing)


def encode_terms(table: pa.Table, dictionary: Dictionary) -> Ids:
    """Encode the terms of a table in a dictionary; return their ids."""
    kinds = table["kind"].to_numpy()
    ids = np.empty(len(kinds), np.int32)
    bits = table["bits"].to_numpy()
    numbers = kinds > L.K_OTHER
    if numbers.any():
        ids[numbers] = dictionary.encode_numbers(kinds[numbers], bits[numbers])
    for kind in np.unique(kinds[~numbers]).tolist():
        positions = np.flatnonzero(kinds == kind)
        texts = table["text"].take(pa.array(positions)).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks)
        offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = texts.buffers()[2]
        encoded = data.to_pybytes()[offsets[0] : offsets[-1]] if data is not None else b""
        ids[positions] = dictionary.encode_texts(kind, np.diff(offsets).astype(np.int64), encoded)
    return ids


def enter_rows(rows: pa.Table | pa.RecordBatch, arity: int, dictionary: Dictionary) -> list[Ids]:
    """Encode rows of terms in a dictionary, each term a kind, bits and a text; return columns of ids."""
    no_keys = pa.array(np.zeros(rows.num_rows, np.int64))
    ids = []
    for n in range(arity):
        kind, bits, text = (rows.column(3 * n + position) for position in range(3))
        ids.append(encode_terms(pa.table([no_keys, kind, bits, text], schema=SCHEMA), dictionary))
    return ids


def decoded(table: pa.Table) -> dict[int, Term]:
    """Return the terms of a table by fingerprint."""
    dictionary = Dictionary()
    ids = encode_terms(table, dictionary)
    keys: list[int] = table["id"].to_pylist()
    return {key: dictionary.decode(number) for key, number in zip(keys, ids.tolist(), strict=True)}


def write_terms(folder: Folder, table: pa.Table) -> DataFile:
    """Write distinct terms, sorted by fingerprint."""
    if not len(table):
        return DataFile("", 0)
    table = table.sort_by("id")
    path = folder.write(table, "terms", folder.block, "id")
    moments, span = write_moments(folder, table)
    return DataFile(
        path, len(table), index=write_sorted_index(folder, table["id"].to_numpy()), moments=moments, span=span
    )


def unseen(new: pa.Table, known: TermFiles, within: FingerprintRange | None = None) -> pa.Table:
    """Return the terms that are not known yet; raise if two share a fingerprint."""
    new = distinct(new)
    if not len(new):
        return new
    existing = known.read(new["id"].to_numpy(), within)
    if not len(existing):
        return new
    kept = distinct(pa.concat_tables([existing, new]))
    if len(kept) < len(new):
        raise AssertionError(len(kept), len(new))
    old = np.unique(existing["id"].to_numpy())
    return new.filter(pa.array(~np.isin(new["id"].to_numpy(), old)))


def distinct(table: pa.Table) -> pa.Table:
    """Return the distinct terms; raise if two share a fingerprint."""
    keys = table["id"].to_numpy()
    distinct, first, positions = np.unique(keys, return_index=True, return_inverse=True)
    if len(distinct) == len(keys):
        return table
    firsts = table.take(pa.array(first[positions]))
    if not table.equals(firsts):
        raise _first_collision(table, firsts)
    return table.take(pa.array(first))


def _first_collision(left: pa.Table, right: pa.Table) -> EvaluationProblem:
    for n in range(len(left)):
        pair = left.slice(n, 1), right.slice(n, 1)
        if not pair[0].equals(pair[1]):
            first, second = (term for row in pair for term in decoded(row).values())
            return collision(first, second)
    raise AssertionError


def refuse_clash(keys: Mapping[Term, int], known: TermFiles) -> None:
    """Raise if a known term has the fingerprint of a different term in `keys`."""
    existing = known.decode(np.array(list(keys.values()), np.int64)) if keys else {}
    for term, key in keys.items():
        if existing.get(key, term) != term:
            raise collision(existing[key], term)


def collision(first: Term, second: Term) -> EvaluationProblem:
    """Return the problem of two terms with the same fingerprint."""
    return EvaluationProblem(
        Diagnostic(
            "E005",
            f"the terms {format_term(first)} and {format_term(second)} have the same fingerprint; "
            "nothing was changed",
            'take other fingerprints: ze.open(engine="spark", seed=1), or --seed 1 on the command line',
        )
    )


def _entries(file: DataFile, keys: Keys | None, within: FingerprintRange | None) -> pa.Table:
    # A file is sorted by fingerprint, so blocks without those that are looked for are not read.
    if keys is None:
        table = read_table(file.path) if within is None else read_between(file.path, "id", *within)
        return table.cast(SCHEMA)
    wanted = np.unique(keys)
    if within is not None:
        wanted = wanted[(wanted >= within.first) & (wanted <= within.last)]
    if file.index is None:
        return read_among(file.path, "id", wanted).cast(SCHEMA)
    tables = BlockReader().tables(file, (_ID,), wanted[:, None])
    chosen = (table.filter(pa.array(np.isin(table["id"].to_numpy(), wanted))) for table in tables)
    return pa.concat_tables([SCHEMA.empty_table(), *(table.cast(SCHEMA) for table in chosen)])
