"""Rows come in the total order however few of them memory holds, and files are the same."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodiacedge.errors import LoadProblem
from zodiacedge.io import external_sort, write_facts
from zodiacedge.io.external_sort import Relations
from zodiacedge.language.ast import Fact, Predicate, fact
from zodiacedge.terms import IRI, BlankNode, Term, boolean, double, integer, literal, order_key, string

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TERMS: tuple[Term, ...] = (
    *(IRI("wt1"), IRI("http://e/ü"), BlankNode("b1"), string(""), string("fünf", "de"), string("wt1")),
    *(integer(5), integer(-7), double(5.0), boolean(value=True), literal("x", "http://e/t")),
    literal("2024-02-29T12:00:00.25Z", "http://www.w3.org/2001/XMLSchema#dateTime"),
    literal("2024-02-29", "http://www.w3.org/2001/XMLSchema#date"),
)
terms = st.sampled_from(TERMS)
facts = st.one_of(
    st.builds(fact, st.just("p"), terms, terms),
    st.builds(fact, st.just("p"), terms, terms, terms),
    st.builds(fact, st.sampled_from(("C", "D")), terms),
    st.just(fact("up")),
)


def in_order(rows: set[tuple[Term, ...]]) -> list[tuple[Term, ...]]:
    """Put rows in the total order."""
    return sorted(rows, key=lambda row: tuple(map(order_key, row)))


@given(st.lists(facts, max_size=40), st.integers(1, 12))
def test_rows_are_in_order_and_each_once_however_few_are_held(given: list[Fact], most: int) -> None:
    expected: dict[Predicate, set[tuple[Term, ...]]] = {Predicate("none", 2): set()}
    for one in given:
        expected.setdefault(one.predicate, set()).add(one.args[: one.predicate.arity])
    with Relations([Predicate("none", 2)], most) as relations:
        relations.add(given)
        for _ in range(2):
            found = {predicate: list(rows) for predicate, rows in relations.items()}
            assert list(found) == sorted(expected)
            assert found == {predicate: in_order(rows) for predicate, rows in expected.items()}


class Counted(IRI):
    """A term that knows how many of its kind there are, now and at most."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, value: str) -> None:
        super().__init__(value)
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self) -> None:
        Counted.alive -= 1


def test_no_more_rows_are_held_than_may_be() -> None:
    def arriving() -> Iterator[Fact]:
        for n in range(5000):
            yield fact("p", Counted(f"n{n * 7919 % 5000:04d}"), integer(n))

    with Relations(most=100) as relations:
        relations.add(arriving())
        names = [row[0] for row in relations[Predicate("p", 2)]]
    assert names == [IRI(f"n{n:04d}") for n in range(5000)]
    assert Counted.most <= 110


@pytest.mark.parametrize("form", ["nt", "ttl", "csv", "tsv", "jsonl", "parquet", "arrow"])
def test_files_are_the_same_whether_rows_waited_on_disk_or_not(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    given = [fact("p", IRI(f"n{n * 7 % 50}"), TERMS[n % len(TERMS)]) for n in range(300)]
    given += [fact(f"C{n % 3}", IRI(f"n{n}")) for n in range(100)]
    reports = []
    for name, most in (("held", 1000), ("waited", 7)):
        monkeypatch.setattr(external_sort, "_MAX_ROWS", most)
        reports.append(write_facts(given, tmp_path / name, form=form, predicates=[Predicate("none", 2)]))
    held, waited = ({one.path.name: one.rows for one in report.files} for report in reports)
    assert held == waited
    for one in (*held, "predicates.json"):
        assert (tmp_path / "held" / one).read_bytes() == (tmp_path / "waited" / one).read_bytes()
    assert not list(temporary.iterdir())


def test_a_refused_export_leaves_nothing_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(external_sort, "_MAX_ROWS", 3)
    with pytest.raises(LoadProblem, match="a literal as subject in 10 of 20 facts"):
        write_facts(
            [fact("p", one(str(n)), IRI("x")) for n in range(10) for one in (IRI, string)],
            tmp_path / "out",
            form="nt",
        )
    assert not list(temporary.iterdir())
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(LoadProblem, match="nowhere"):
        write_facts([fact("p", IRI(str(n)), IRI("x")) for n in range(10)], tmp_path / "out")
