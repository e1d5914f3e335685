"""LUBM, the Lehigh University Benchmark: generated universities, and 128 rules about them.

The rules are LUBM's ontology as Datalog. The data follows the published profile of LUBM's own generator, with
the names and relations of the common CSV files of LUBM-1. An entity is a string, as in these files, or
optionally an IRI; N-Triples always has IRIs, as subjects in RDF must be. The number of derived facts is the
same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, Literal, Term
from zodiacedge_bench.workloads import lubm_files, rule_files
from zodiacedge_bench.workloads.lubm_university import SEED, TEXTS, universities

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from zodiacedge.io import ExportReport

# The number of derived facts by the number of universities, from the reference evaluator and clingo.
DERIVED = {1: 138_710, 10: 1_818_393}
# The rules that `bench lubm` inserts and deletes.
LAST_RULES = tuple(f"r{n}" for n in range(121, 129))
PUBLICATION_RULES = tuple(
    f"r{n}" for n in (15, 16, 20, 39, 42, 48, 74, 83, 93, 94, 95, 97, 102, 103, 106, 126)
)


def rules() -> str:
    """Return the text of the 128 rules."""
    return rule_files.rules("lubm")


def facts(
    count: int, *, departments: int | None = None, iris: bool = False, seed: int = SEED
) -> Iterator[Fact]:
    """Yield the distinct facts of universities, one university after the other.

    The facts of fewer universities are a prefix of those of more.

    Args:
        count: The number of universities.
        departments: The maximum of departments per university; all if not given.
        iris: Whether entities are IRIs; else they are strings.
        seed: The seed; with the default, University0 is similar to LUBM-1.
    """
    for university in universities(count, seed=seed, departments=departments):
        entities: Sequence[Term] = [(IRI if iris else Literal)(name) for name in university.entities]
        texts: Sequence[Term] = [Literal(text) for text in university.texts]
        for name, columns in university.columns.items():
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
        folder: The target, created if it does not exist. An earlier export there is replaced.
        count: The number of universities.
        form: `parquet csv nt`.
        compression: `gz bz2 zst` or none; Parquet (gz, zst) compresses inside the file.
        departments: The maximum of departments per university.
        iris: Whether entities are IRIs in tables too, as in N-Triples.
        seed: The seed of the random data.
    """
    generated = universities(count, seed=seed, departments=departments)
    return lubm_files.write(folder, generated, form=form, compression=compression, iris=iris)
