"""Terms as fingerprints, and the files that tell what a fingerprint stands for.

A fingerprint is a hash, the same in every process, so nobody counts and nobody asks. Two terms with one
fingerprint would make the engine lie: whoever adds terms compares them with those that are there, and a clash
fails the change. Terms are columns, as in the embedded engine's dictionary: a kind, and a number's bits or a
text. Within a file they stand in the order of their fingerprints, so one is found without reading all.
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
from zodiacedge.engine.spark.storage.files import DataFile, Folder, read_groups, read_table
from zodiacedge.errors import Diagnostic, EvaluationProblem
from zodiacedge.language.printer import format_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.embedded.types import Ids, Keys
    from zodiacedge.terms import Term


SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.int8()), ("bits", pa.int64()), ("text", pa.binary())])
# So few are looked for by themselves; more are found by reading all, a row group at a time.
FEW = 256


class Hashing(NamedTuple):
    """How fingerprints are made."""

    seed: int = 0
    bits: int = MOST_BITS

    def keys(self, dictionary: Dictionary, first: int = 0) -> Keys:
        """Return the fingerprints of a dictionary's terms, from an id on."""
        return fingerprints(dictionary, first, seed=self.seed, bits=self.bits)

    def key(self, term: Term) -> int:
        """Return the fingerprint of a term."""
        return self.keys_of((term,))[term]

    def keys_of(self, terms: Iterable[Term]) -> dict[Term, int]:
        """Return the fingerprints of some terms."""
        given = list(dict.fromkeys(terms))
        dictionary = Dictionary()
        ids = dictionary.encode_all(given)
        keys = self.keys(dictionary)
        return dict(zip(given, keys[ids].tolist(), strict=True)) if given else {}

    def stretches(self, count: int) -> list[Stretch]:
        """Return all fingerprints that there can be, in so many stretches of the same length."""
        ends = [(number << self.bits) // count for number in range(count + 1)]
        return [Stretch(first, end - 1) for first, end in pairwise(ends)]


class Stretch(NamedTuple):
    """Fingerprints from one to another, both among them."""

    first: int
    last: int


@dataclass(frozen=True)
class TermFiles:
    """All that is known of terms: files, each with what nobody else has, or has just the same."""

    parts: tuple[DataFile, ...] = ()

    @property
    def rows(self) -> int:
        """How many entries the files have."""
        return sum(part.rows for part in self.parts)

    def read(self, keys: Keys | None = None, within: Stretch | None = None) -> pa.Table:
        """Return the entries of some fingerprints, or all; those that stand in several files come twice.

        `within` reads only those of a stretch of all fingerprints that there can be.
        """
        tables = [_entries(part, keys, within) for part in self.parts]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def decode(self, keys: Keys) -> dict[int, Term]:
        """Return what some fingerprints stand for."""
        return decoded(self.read(np.unique(keys)))


def columns_of(dictionary: Dictionary, hashing: Hashing, first: int = 0) -> pa.Table:
    """Return the terms of a dictionary as a table, from an id on."""
    keys = hashing.keys(dictionary, first)
    kinds = dictionary.kinds[first:]
    texts = kinds <= L.K_OTHER
    ids = np.flatnonzero(texts).astype(np.int32) + np.int32(first)
    ends, data = dictionary.texts(ids)
    # A number has no text: its place among the texts is empty.
    lengths = np.zeros(len(kinds), np.int32)
    lengths[texts] = np.diff(ends)
    offsets = np.zeros(len(kinds) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = pa.BinaryArray.from_buffers(
        pa.binary(), len(kinds), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    bits = np.where(texts, 0, dictionary.payloads[first:])
    return pa.table([pa.array(keys), pa.array(kinds), pa.array(bits), text], schema=SCHEMA)


def enter(table: pa.Table, dictionary: Dictionary) -> Ids:
    """Take the terms of a table into a dictionary; return their ids there."""
    kinds = table["kind"].to_numpy()
    ids = np.empty(len(kinds), np.int32)
    bits = table["bits"].to_numpy()
    numbers = kinds > L.K_OTHER
    if numbers.any():
        ids[numbers] = dictionary.encode_numbers(kinds[numbers], bits[numbers])
    for kind in np.unique(kinds[~numbers]).tolist():
        places = np.flatnonzero(kinds == kind)
        texts = table["text"].take(pa.array(places)).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks)
        offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = texts.buffers()[2]
        whole = data.to_pybytes()[offsets[0] : offsets[-1]] if data is not None else b""
        ids[places] = dictionary.encode_texts(kind, np.diff(offsets).astype(np.int64), whole)
    return ids


def enter_rows(rows: pa.Table | pa.RecordBatch, arity: int, dictionary: Dictionary) -> list[Ids]:
    """Take rows of terms into a dictionary, each term a kind, bits and a text; return columns of ids."""
    nothing = pa.array(np.zeros(rows.num_rows, np.int64))
    found = []
    for n in range(arity):
        kind, bits, text = (rows.column(3 * n + place) for place in range(3))
        found.append(enter(pa.table([nothing, kind, bits, text], schema=SCHEMA), dictionary))
    return found


def decoded(table: pa.Table) -> dict[int, Term]:
    """Return the terms of a table by fingerprint."""
    dictionary = Dictionary()
    ids = enter(table, dictionary)
    keys: list[int] = table["id"].to_pylist()
    return {key: dictionary.decode(number) for key, number in zip(keys, ids.tolist(), strict=True)}


def write_terms(folder: Folder, table: pa.Table) -> DataFile:
    """Write terms, each once, in the order of their fingerprints."""
    if not len(table):
        return DataFile("", 0)
    return DataFile(folder.write(table.sort_by("id"), "terms"), len(table))


def unseen(new: pa.Table, known: TermFiles, within: Stretch | None = None) -> pa.Table:
    """Return those terms that are not known yet; raise where two share a fingerprint."""
    new = distinct(new)
    there = known.read(new["id"].to_numpy(), within) if known.parts else SCHEMA.empty_table()
    if not len(there):
        return new
    kept = distinct(pa.concat_tables([there, new]))
    if len(kept) < len(new):
        raise AssertionError(len(kept), len(new))
    old = np.unique(there["id"].to_numpy())
    return new.filter(pa.array(~np.isin(new["id"].to_numpy(), old)))


def distinct(table: pa.Table) -> pa.Table:
    """Return each term once; raise where two share a fingerprint."""
    keys = table["id"].to_numpy()
    distinct, first, places = np.unique(keys, return_index=True, return_inverse=True)
    if len(distinct) == len(keys):
        return table
    # What has the same fingerprint must be the same.
    firsts = table.take(pa.array(first[places]))
    if not table.equals(firsts):
        raise _clash(table, firsts)
    return table.take(pa.array(first))


def _clash(one: pa.Table, other: pa.Table) -> EvaluationProblem:
    for n in range(len(one)):
        pair = one.slice(n, 1), other.slice(n, 1)
        if not pair[0].equals(pair[1]):
            first, second = (shown(row) for row in pair)
            return clash(first, second)
    raise AssertionError


def shown(row: pa.Table) -> str:
    """Return the term of a table's one row as text."""
    (term,) = decoded(row).values()
    return format_term(term)


def refuse_clash(keys: Mapping[Term, int], known: TermFiles) -> None:
    """Raise if what is known has another term with the fingerprint of one of some terms."""
    there = known.decode(np.array(list(keys.values()), np.int64)) if keys else {}
    for term, key in keys.items():
        if there.get(key, term) != term:
            raise clash(format_term(there[key]), format_term(term))


def clash(first: str, second: str) -> EvaluationProblem:
    """Return the problem that two terms with one fingerprint are."""
    return EvaluationProblem(
        Diagnostic(
            "E005",
            f"the terms {first} and {second} have the same fingerprint; nothing was changed",
            'take other fingerprints: ze.open(engine="spark", seed=1), or --seed 1 on the command line',
        )
    )


def _entries(part: DataFile, keys: Keys | None, within: Stretch | None) -> pa.Table:
    # Fingerprints stand in order: of a file, only what has some of a stretch is read.
    bounds = None if within is None else [("id", ">=", within.first), ("id", "<=", within.last)]
    if keys is None:
        return read_table(part.path, filters=bounds).cast(SCHEMA)
    if len(keys) <= FEW:
        return read_table(part.path, filters=[("id", "in", keys.tolist())]).cast(SCHEMA)
    # There may be many times as many as are asked for, and the driver asks too.
    pieces = read_groups(part.path) if within is None else [read_table(part.path, filters=bounds)]
    found = [one.filter(pa.array(np.isin(one["id"].to_numpy(), keys))) for one in pieces]
    return pa.concat_tables(found).cast(SCHEMA)


@dataclass(frozen=True)
class Names:
    """What the classes of facts are called: few, and asked for often."""

    known: Mapping[int, Term]

    def with_terms(self, more: Mapping[int, Term]) -> Names:
        """Return these names and more."""
        return Names({**self.known, **more}) if more.keys() - self.known.keys() else self

    def missing(self, keys: Iterable[int]) -> list[int]:
        """Return those of some fingerprints that are not known."""
        return [key for key in keys if key not in self.known]
