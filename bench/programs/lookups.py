"""How long a point look-up takes in the API: a prepared query and a value for one of its arguments.

Beside it the same question as text, which is checked and planned each time, and a prepared statement of
DuckDB on the same rows with an index on the column asked for. Two kinds of data: one relation, loaded from
N-Triples, and what the rules of LUBM derive. Each is asked for one row and for about six, at random keys,
the same for all; a wrong number of rows ends the program. Target: half of the prepared look-ups take less
than 100 µs.

    python bench/programs/lookups.py [FACTS] [UNIVERSITIES]
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import zodiacedge as ze
from zodiacedge.language.printer import format_term
from zodiacedge_bench.workloads import lubm

if TYPE_CHECKING:
    from collections.abc import Sequence

FACTS = 1_000_000
UNIVERSITIES = 10
LINKS = 6
LOOKUPS = 2_000
LOOKUPS_AS_TEXT = 200
TARGET = 100.0


class Asked(Protocol):
    """A way to look up: the number of rows for a key."""

    def __call__(self, key: ze.IRI, /) -> int:
        """Look up."""


@dataclass(frozen=True)
class Question:
    """The rows of a relation with a given first (X) or second (Y) argument."""

    relation: str
    given: str

    def __str__(self) -> str:
        """Show it as a person would say it."""
        return f"{self.relation}(X, Y), {self.given} given"

    @property
    def workspace(self) -> int:
        """Which column is given."""
        return "XY".index(self.given)


def links(total: int, path: Path) -> None:
    """Write a relation as N-Triples: each subject has six objects of its own."""
    node = "http://example.org/node/"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"<{node}s{n // LINKS}> <link> <{node}o{n}> .\n" for n in range(total))


def by_prepared(kb: ze.KnowledgeBase, question: Question) -> Asked:
    """Look up by a prepared query."""
    prepared = kb.prepare(f"?- {question.relation}(X, Y) .", question.given)
    return lambda key: len(prepared(**{question.given: key}))


def by_text(kb: ze.KnowledgeBase, question: Question) -> Asked:
    """Look up by a query with the key in its text."""
    head, body = "Y" if question.given == "X" else "X", f"{question.relation}(X, Y)"
    return lambda key: len(kb.query(f"ans({head}) :- {body.replace(question.given, format_term(key))} ."))


def by_duckdb(rows: Sequence[tuple[str, str]], question: Question) -> Asked | None:
    """Look up by a prepared statement of DuckDB, if it is installed."""
    try:
        import duckdb  # noqa: PLC0415 - a peer, which need not be there
        import pyarrow as pa  # noqa: PLC0415 - only for it
    except ImportError:
        return None
    database = duckdb.connect()
    database.execute("SET threads = 1")
    table = pa.table({"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    database.register("given", table)
    database.execute("CREATE TABLE r AS FROM given")
    database.execute(f"CREATE INDEX i ON r ({question.given})")
    database.execute(f"PREPARE p AS SELECT x, y FROM r WHERE {question.given} = ?")  # noqa: S608 - X or Y
    return lambda key: len(database.execute(f"EXECUTE p('{key.value}')").fetchall())


def microseconds(ask: Asked, keys: Sequence[ze.IRI], rows: Counter[str]) -> list[float]:
    """Return how long each look-up took."""
    found = []
    for key in keys:
        start = perf_counter()
        number = ask(key)
        found.append(1e6 * (perf_counter() - start))
        if number != rows[key.value]:
            raise SystemExit(f"{key.value} has {rows[key.value]} rows, found {number}")
    return found


def measure(kb: ze.KnowledgeBase, question: Question) -> float:
    """Print the figures of one question; return the median of the prepared look-ups."""
    answers = kb.query(f"?- {question.relation}(X, Y) .").rows
    rows = [(x.value, y.value) for x, y in answers if isinstance(x, ze.IRI) and isinstance(y, ze.IRI)]
    held = Counter(row[question.workspace] for row in rows)
    names = random.Random(1).choices(sorted(held), k=LOOKUPS)
    keys = [ze.iri(name) for name in names]
    mean = sum(held[name] for name in names) / LOOKUPS
    print(f"{question}: {len(rows):,} facts, {mean:.1f} rows an answer")
    gc.collect()
    gc.freeze()
    median = 0.0
    ways: list[tuple[str, Asked | None, int]] = [
        ("prepared", by_prepared(kb, question), LOOKUPS),
        ("as text", by_text(kb, question), LOOKUPS_AS_TEXT),
        ("DuckDB prepared", by_duckdb(rows, question), LOOKUPS),
    ]
    for name, ask, count in ways:
        if ask is None:
            print(f"  {name:<16} DuckDB is not installed")
            continue
        first, *took = microseconds(ask, keys[: count + 1], held)
        centiles = quantiles(took, n=100)
        median = median or centiles[49]
        print(f"  {name:<16} p50 {centiles[49]:8.0f} µs   p99 {centiles[98]:8.0f} µs   first {first:8.0f} µs")
    gc.unfreeze()
    return median


def main() -> None:
    """Measure both kinds of data."""
    total = int(sys.argv[1]) if len(sys.argv) > 1 else FACTS
    universities = int(sys.argv[2]) if len(sys.argv) > 2 else UNIVERSITIES
    medians = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.nt"
        links(total, path)
        kb = ze.open()
        with kb.change() as c:
            c.load(path)
        medians += [measure(kb, Question("link", given)) for given in "YX"]
    with tempfile.TemporaryDirectory() as folder:
        lubm.write(folder, universities, form="nt")
        kb = ze.open()
        with kb.change() as c:
            c.add_rules(lubm.rules())
            c.load(folder)
        print(f"LUBM-{universities}: {sum(kb.derived().values()):,} derived facts")
        medians += [measure(kb, Question("advisor", given)) for given in "XY"]
    print(f"target {TARGET:.0f} µs: {'met' if max(medians) < TARGET else 'missed'}")


if __name__ == "__main__":
    main()
