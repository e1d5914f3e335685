"""How fast N-Triples become tables that can be queried: our parser, pyoxigraph's objects, and `io.read`.

The file is made up: half of the objects are IRIs (a tenth of all triples are class memberships), 30 %
numbers, 20 % strings; subjects come in runs, as exports write them. A rate is the best of three runs in
this process, each from the file on disk, the compile cache warm; seconds are of the processor, which tell
two versions apart on a busy machine too. Ours ends with every fact in a table
with its row-set; the other two end with Python objects.

    python bench/programs/load_ntriples.py [TRIPLES]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox

from zodiacedge.engine.embedded.ingest.ntriples.reader import group_triples, triple_batches
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.io import read
from zodiacedge.io.formats.lines import FileReading, ReadOptions
from zodiacedge.io.sources import expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRIPLES = 1_000_000
RUNS = 3
BATCH = 1 << 18
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"
WORDS = [
    "turbine",
    "rotor",
    "blade",
    "gearbox",
    "wind",
    "north",
    "sensor",
    "reading",
    "alarm",
    "service",
    "grid",
    "yaw",
    "pitch",
    "nacelle",
]


def lines(total: int) -> Iterator[str]:
    """Yield lines of N-Triples, the same ones each time."""
    dice = random.Random(7)
    entity = "<http://example.org/farm/entity/"
    subject = 0
    for n in range(total):
        if n % 7 == 0:
            subject = dice.randrange(total // 5 + 1)
        share = dice.random()
        if share < 0.1:
            predicate, value = RDF_TYPE, f"<http://example.org/farm/Class{dice.randrange(20)}>"
        else:
            predicate = f"<http://example.org/farm/property{dice.randrange(30)}>"
            value = f"{entity}{dice.randrange(total // 5 + 1)}>"
        if 0.5 <= share < 0.65:
            value = f'"{dice.randrange(100_000)}"^^<{XSD}integer>'
        elif 0.65 <= share < 0.75:
            value = f'"{dice.randrange(-4000, 9000) / 100}"^^<{XSD}decimal>'
        elif 0.75 <= share < 0.8:
            value = f'"{dice.gauss(20, 5)!r}"^^<{XSD}double>'
        elif share >= 0.8:
            text = " ".join(dice.choices(WORDS, k=dice.randrange(1, 7)))
            value = f'"{text} {n}"' if share < 0.9 else f'"{text}"@en'
        yield f"{entity}{subject}> {predicate} {value} .\n"


def ours(path: Path) -> int:
    """Load into tables with row-sets; return the number of triples."""
    (source,) = expand([path])
    dictionary = Dictionary()
    relations: dict[tuple[int, int], Table] = {}
    total = 0
    for triples in triple_batches(FileReading(source, ReadOptions(batch_size=BATCH)), dictionary):
        total += len(triples)
        for arity, groups in zip((2, 1), group_triples(triples, dictionary), strict=True):
            for name, rows in groups.items():
                table = relations.get((name, arity))
                if table is None:
                    table = relations[name, arity] = Table(arity)
                table.insert(rows)
    return total


def parse_only(path: Path) -> int:
    """Read into the dictionary and leave the triples."""
    (source,) = expand([path])
    reading = FileReading(source, ReadOptions(batch_size=BATCH))
    return sum(len(triples) for triples in triple_batches(reading, Dictionary()))


def pyoxigraph_objects(path: Path) -> int:
    """Make pyoxigraph's own objects, and drop them."""
    return sum(1 for _ in ox.parse(path=path, format=ox.RdfFormat.N_TRIPLES, lenient=True))


def our_facts(path: Path) -> int:
    """Make our facts by `io.read`, and drop them."""
    return sum(len(batch) for batch in read(path))


def best(load: Callable[[Path], int], path: Path, expected: int) -> float:
    """Return the triples per second of the processor, of the best run."""
    seconds = []
    for _ in range(RUNS):
        started = time.process_time()
        found = load(path)
        seconds.append(time.process_time() - started)
        if found != expected:
            message = f"{load.__name__} found {found} triples of {expected}"
            raise SystemExit(message)
    return expected / min(seconds)


def main() -> None:
    """Print the rates."""
    total = int(sys.argv[1]) if len(sys.argv) > 1 else TRIPLES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "farm.nt"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines(total))
        small = Path(folder) / "small.nt"
        small.write_text("".join(lines(100)), encoding="utf-8")
        ours(small)  # compiles
        print(f"{total:,} triples, {path.stat().st_size / 1e6:.0f} MB, best of {RUNS}")
        reference = 0.0
        for name, load in (
            ("parsed to tables", ours),
            ("parsed to ids", parse_only),
            ("pyoxigraph's objects", pyoxigraph_objects),
            ("io.read, our facts", our_facts),
        ):
            rate = best(load, path, total)
            reference = reference or rate
            print(f"{name:22}{rate:12,.0f} triples/s   {rate / reference:5.2f}")


if __name__ == "__main__":
    main()
