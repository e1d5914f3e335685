"""LUBM, the Lehigh University Benchmark: made-up universities, and 128 rules about them.

The rules are those of LUBM's ontology as Datalog. The data follows the published profile of LUBM's own
generator, with the names and relations of the CSV files in which LUBM-1 is passed around. An entity is a
string there, as a cell without brackets is, or an IRI if asked for; RDF has no strings as subjects, so
N-Triples always has IRIs. No rule cares, so the derived facts are as many either way.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, Literal, Term
from zodiacedge.workloads import lubm_files
from zodiacedge.workloads.lubm_university import SEED, TEXTS, universities

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from zodiacedge.io import ExportReport

# How many facts the rules derive from so many universities, by the reference evaluator and by clingo.
DERIVED = {1: 138_710, 10: 1_818_393}
# What changes while the engine runs, in `bench lubm`.
LAST_RULES = tuple(f"r{n}" for n in range(121, 129))
PUBLICATION_RULES = tuple(
    f"r{n}" for n in (15, 16, 20, 39, 42, 48, 74, 83, 93, 94, 95, 97, 102, 103, 106, 126)
)


def rules() -> str:
    """Return the text of the 128 rules."""
    return (files("zodiacedge.workloads") / "rules" / "lubm.rules").read_text(encoding="utf-8")


def facts(
    count: int, *, departments: int | None = None, iris: bool = False, seed: int = SEED
) -> Iterator[Fact]:
    """Yield the facts of some universities, one university after the other, no fact twice.

    The facts of fewer universities are the first ones of more.

    Args:
        count: How many universities.
        departments: The most departments that a university has; all of its own if not given.
        iris: Whether entities are IRIs; else they are strings.
        seed: Which universities; the default makes University0 much like LUBM-1.
    """
    for one in universities(count, seed=seed, departments=departments):
        entities: Sequence[Term] = [(IRI if iris else Literal)(name) for name in one.entities]
        texts: Sequence[Term] = [Literal(text) for text in one.texts]
        for name, columns in one.columns.items():
            relation = lubm_files.relation(name)
            pools = (entities, texts if name in TEXTS else entities)
            terms = [[pool[at] for at in column] for pool, column in zip(pools, columns, strict=False)]
            for args in zip(*terms, strict=True):
                yield fact(relation, *args)


def tables(
    count: int, *, departments: int | None = None, iris: bool = False, seed: int = SEED
) -> dict[str, pa.Table]:
    """Return the same facts as Arrow tables of cells, by relation."""
    return lubm_files.tables(universities(count, seed=seed, departments=departments), iris=iris)


def write(  # noqa: PLR0913 - each keyword is an option that users set alone
    folder: str | os.PathLike[str],
    count: int,
    *,
    form: str = "parquet",
    compression: str = "",
    departments: int | None = None,
    iris: bool = False,
    seed: int = SEED,
) -> ExportReport:
    """Write the same facts to files, one per relation, a university at a time.

    Args:
        folder: Where to write; made where it does not exist. An earlier export there is replaced.
        count: How many universities.
        form: `parquet csv nt`.
        compression: `gz bz2 zst` or none; Parquet (gz, zst) compresses inside the file.
        departments: The most departments that a university has.
        iris: Whether entities are IRIs in tables too; in N-Triples they are.
        seed: Which universities.
    """
    made = universities(count, seed=seed, departments=departments)
    return lubm_files.write(folder, made, form=form, compression=compression, iris=iris)
