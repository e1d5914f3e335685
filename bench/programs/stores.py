"""What a store costs: opening, single changes alone and beside a flush, many predicates.

    python bench/programs/stores.py [FACTS] [PREDICATES]

First a store is opened, one fact of a small relation is changed, and the store is closed: in a store of a
tenth of the facts, and in one of all. Then a store of so many facts, half of them derived, is made and opened
again. Single changes are timed, first alone and then with the log kept so short that a flush is always under
way: how much longer half of them and the slowest hundredth take is the cost of flushing. At last a store of
many predicates is flushed as a whole, opened, and flushed after one change. Everything that is opened is
counted.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable

FACTS = 1_000_000
PREDICATES = 2_000
PER_PREDICATE = 20
CHANGES = 300
REPEATS = 5
# So short that nearly every change of a few hundred bytes finds a flush under way.
SHORT_LOG = 2_000


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def changes(kb: ze.KnowledgeBase, many: int) -> tuple[float, float]:
    """Time single changes; return the median and the slowest hundredth, in milliseconds."""

    def change() -> None:
        with kb.change() as c:
            c.add_facts([("reading", ze.iri("http://farm.example/s"), 10**7 + kb.version)])

    for _ in range(10):
        change()
    times = [1000 * timed(change) for _ in range(many)]
    return quantiles(times, n=2)[0], quantiles(times, n=100)[-1]


def large(place: Path, facts: int) -> None:
    """Make a large store, open it, and change it with and without a flush beside."""
    file = place / "reading.csv"
    file.write_text("".join(f"<http://farm.example/sensor/{n % 5000}>,{n}\n" for n in range(facts // 2)))
    with ze.open(place / "farm", create=True) as kb, kb.change() as c:
        c.add_rules("warm(S, V) :- reading(S, V), V >= 0 .")
        c.load(file)
    kb = ze.open(place / "farm")
    kb.close()
    seconds = timed(lambda: ze.open(place / "farm", read_only=True))
    count = sum(kb.explicit_counts().values()) + sum(kb.derived().values())
    print(f"opening {count:,} facts takes {seconds:.2f} s")
    kb = ze.open(place / "farm")
    alone = changes(kb, CHANGES)
    if kb.store is None:
        raise SystemExit("this is no store")
    kb.store.flush_bytes = SHORT_LOG
    beside = changes(kb, CHANGES)
    for name, one, other in zip(("median", "slowest hundredth"), alone, beside, strict=True):
        print(f"a change, {name}: {one:.2f} ms alone, {other:.2f} ms beside a flush, {other / one:.1f} times")
    kb.close()
    if sum(kb.derived().values()) != sum(kb.explicit_counts().values()):
        raise SystemExit("the store is not what it should be")


def many(place: Path, predicates: int) -> None:
    """Make a store of many predicates, flush it, open it, and flush one change."""
    kb = ze.open(place / "many", create=True)
    with kb.change() as c:
        c.add_facts([(f"p{n}", n, m) for n in range(predicates) for m in range(PER_PREDICATE)])
    whole = timed(kb.close)
    opened = timed(lambda: ze.open(place / "many", read_only=True))
    kb = ze.open(place / "many")
    if len(kb.facts()) != predicates * PER_PREDICATE:
        raise SystemExit("facts are missing")
    with kb.change() as c:
        c.add_facts([("p0", 0, -1)])
    one = timed(kb.close)
    print(
        f"{predicates:,} predicates: {whole:.2f} s to flush, {opened:.2f} s to open, "
        f"{one:.2f} s to flush one of them; "
        f"{1000 * whole / predicates:.2f} and {1000 * opened / predicates:.2f} ms for each"
    )


def one_fact(folder: Path, facts: int) -> None:
    """Open a store, change one fact of a small relation and close; print processor seconds of each step.

    A quarter of the facts are derived members of classes, which are in one table of all classes.
    """
    readings, kinds = folder / "reading.csv", folder / "kind.csv"
    sensor = "<http://farm.example/sensor/"
    readings.write_text("".join(f"{sensor}{n % 5000}>,{n}\n" for n in range(facts // 4)))
    kinds.write_text(
        "".join(f"{sensor}{n}>,<http://farm.example/kind/{n % 200}>\n" for n in range(facts // 4))
    )
    with ze.open(folder / "one", create=True) as kb, kb.change() as c:
        c.add_rules("warm(S, V) :- reading(S, V), V >= 0 . hall(S) :- in_hall(S) .")
        c.add_rules("rdf:type(S, K) :- kind(S, K) .")
        c.add_facts([("in_hall", ze.iri("http://farm.example/sensor/0"))])
        c.load(readings, kinds)
    steps: dict[str, list[float]] = {"open": [], "change": [], "close": []}
    for number in range(1, 1 + REPEATS):
        times = [process_time()]
        kb = ze.open(folder / "one")
        times.append(process_time())
        with kb.change() as c:
            c.add_facts([("in_hall", ze.iri(f"http://farm.example/sensor/{number}"))])
        times.append(process_time())
        kb.close()
        times.append(process_time())
        for step, start, end in zip(steps.values(), times, times[1:], strict=False):
            step.append(end - start)
    spent = ", ".join(f"{name} {min(step):.3f} s" for name, step in steps.items())
    print(f"one fact in a store of {facts:,} facts, processor time: {spent}")


def main() -> None:
    """Measure."""
    facts, predicates, *_ = [*map(int, sys.argv[1:]), *(FACTS, PREDICATES)[len(sys.argv) - 1 :], 0]
    for size in (facts // 10, facts):
        with tempfile.TemporaryDirectory() as folder:
            one_fact(Path(folder), size)
    with tempfile.TemporaryDirectory() as folder:
        large(Path(folder), facts)
        many(Path(folder), predicates)


if __name__ == "__main__":
    main()
