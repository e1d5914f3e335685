"""Terms go by fingerprints: the same in every process, and a clash is found."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import zodiacedge as ze
from spark.conftest import CLUSTER
from strategies import evaluate_text
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.spark.engine import SparkEngine
from zodiacedge.engine.spark.state import SparkState
from zodiacedge.engine.spark.storage import blocks
from zodiacedge.engine.spark.storage.files import Folder
from zodiacedge.engine.spark.storage.terms import (
    Hashing,
    TermFiles,
    columns_of,
    decoded,
    encode_terms,
    unseen,
    write_terms,
)
from zodiacedge.engine.spark.storage.workspace import Options
from zodiacedge.errors import EvaluationProblem
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.terms import IRI, BlankNode, Literal, boolean, decimal, double, integer, literal, string

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from zodiacedge.terms import Term

TERMS: list[Term] = [
    IRI("http://e/a"),
    IRI(""),
    BlankNode("a"),
    Literal("a"),
    Literal(""),
    string("a", "en"),
    literal("a", "http://e/type"),
    integer(2),
    integer(-2),
    double(0.0),
    double(2.0),
    decimal(2.0),
    boolean(True),  # noqa: FBT003
    literal("2026-01-01T00:00:00Z", "http://www.w3.org/2001/XMLSchema#dateTime"),
    literal("2026-01-01", "http://www.w3.org/2001/XMLSchema#date"),
]


def entries(terms: Iterable[Term]) -> Dictionary:
    dictionary = Dictionary()
    dictionary.encode_all(terms)
    return dictionary


def test_terms_come_back_from_their_columns(tmp_path: Path) -> None:
    hashing = Hashing()
    dictionary = entries(TERMS)
    part = write_terms(Folder(str(tmp_path)), columns_of(dictionary, hashing))
    keys = hashing.keys(dictionary)
    assert part.rows == len(TERMS) == len(np.unique(keys))
    assert TermFiles((part,)).decode(keys) == dict(zip(keys.tolist(), TERMS, strict=True))
    assert TermFiles((part,)).decode(keys[3:5]) == dict(zip(keys[3:5].tolist(), TERMS[3:5], strict=True))
    other = Dictionary()
    other.encode(IRI("first"))
    encode_terms(TermFiles((part,)).read(), other)
    assert {other.decode(n) for n in range(len(other))} == {IRI("first"), *TERMS}


def test_of_many_terms_no_more_than_a_row_group_is_held_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_TOGETHER", 1)
    dictionary = entries(map(integer, range(1000)))
    part = write_terms(Folder(str(tmp_path), 100), columns_of(dictionary, Hashing()))
    wanted = Hashing().keys(dictionary)[:400]
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    assert set(TermFiles((part,)).decode(wanted).values()) == set(map(integer, range(400)))
    assert pq.ParquetFile(part.path).num_row_groups == 10


def test_a_fingerprint_is_the_same_in_another_process_and_another_with_another_seed() -> None:
    script = (
        "from zodiacedge.engine.spark.storage.terms import Hashing\n"
        "from zodiacedge.terms import IRI, integer\n"
        "print(Hashing().key(IRI('http://e/a')), Hashing().key(integer(2)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    own = [Hashing().key(IRI("http://e/a")), Hashing().key(integer(2))]
    assert list(map(int, done.stdout.split())) == own
    assert Hashing(seed=1).key(IRI("http://e/a")) not in own


def test_many_terms_have_many_fingerprints() -> None:
    dictionary = Dictionary()
    dictionary.encode_integers(np.arange(200_000))
    dictionary.encode_all(IRI(f"http://e/{n}") for n in range(50_000))
    dictionary.encode_all(double(n / 10) for n in range(50_000))
    keys = Hashing().keys(dictionary)
    assert len(np.unique(keys)) == len(dictionary)
    # A good hash puts as many into each of 256 equal stretches.
    sizes = np.bincount(keys >> 55, minlength=256)
    assert sizes.min() > 0.8 * sizes.mean()
    assert sizes.max() < 1.2 * sizes.mean()


def test_a_clash_among_new_terms_and_with_known_ones_is_found(tmp_path: Path) -> None:
    weak = Hashing(bits=4)
    many = columns_of(entries([integer(n) for n in range(40)]), weak)
    with pytest.raises(EvaluationProblem, match="E005"):
        unseen(many, TermFiles())
    names = [IRI(f"n{n}") for n in range(200)]
    keys = weak.keys_of(names)
    first = names[0]
    second = next(name for name in names[1:] if keys[name] == keys[first])
    known = TermFiles((write_terms(Folder(str(tmp_path)), columns_of(entries([first]), weak)),))
    with pytest.raises(EvaluationProblem, match="have the same fingerprint"):
        unseen(columns_of(entries([second]), weak), known)
    assert len(unseen(columns_of(entries([first]), weak), known)) == 0


@pytest.mark.parametrize(
    "options", [Options(), Options(strategy="rounds", gather_rows=0)], ids=["small", "large"]
)
def test_a_change_with_a_clash_fails_and_leaves_all_as_it_was(options: Options, java: None) -> None:  # noqa: ARG001
    kb = KnowledgeBase(SparkEngine(cluster=CLUSTER, bits=8, options=options), Settings())
    with kb.change() as change:
        change.add_facts("p(a, b) .")
    before = kb.facts()
    with pytest.raises(EvaluationProblem, match="seed=1"), kb.change() as change:
        change.add_facts(" ".join(f"p(n{n}, {n}) ." for n in range(60)))
    assert kb.facts() == before
    assert kb.version == 1


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(), id="small"),
        pytest.param(Options(strategy="rounds", gather_rows=0), id="large", marks=pytest.mark.soak),
    ],
)
def test_what_rules_and_queries_mention_is_not_taken_for_another_term(options: Options, java: None) -> None:  # noqa: ARG001
    kb = KnowledgeBase(SparkEngine(cluster=CLUSTER, bits=20, options=options), Settings())
    with kb.change() as change:
        change.add_rules("l: last(X, Y) :- p(X, Y), not p(Y, here) . p(a, b) .")
    state = kb.state
    assert isinstance(state, SparkState)
    names = [IRI(f"n{n}") for n in range(3_000_000)]
    keys = state.workspace.hashing.keys_of([IRI("a"), IRI("here"), *names])
    like_a, like_here = (
        next(name for name in names if keys[name] == keys[IRI(known)]) for known in ("a", "here")
    )
    with pytest.raises(EvaluationProblem, match="E005"):
        kb.query(f"?- p({like_a.value}, X) .")
    with pytest.raises(EvaluationProblem, match="E005"):
        kb.prepare("?- p(X, Y) .", "X")(X=like_a)
    for like in (like_a, like_here):
        with pytest.raises(EvaluationProblem, match="E005"), kb.change() as change:
            change.add_rules(f"m: q(X) :- p(X, {like.value}) .")
    assert kb.query("?- p(a, X) .").rows == ((IRI("b"),),)


@pytest.mark.usefixtures("java")
def test_what_a_query_by_plan_computes_is_not_taken_for_another_term() -> None:
    options = Options(strategy="rounds", gather_rows=0)
    kb = KnowledgeBase(SparkEngine(cluster=CLUSTER, bits=16, options=options), Settings())
    state = kb.state
    assert isinstance(state, SparkState)
    keys = state.workspace.hashing.keys_of([IRI("a"), *map(integer, range(2, 800_000))])
    like_a = next(n for n in range(2, 800_000) if keys[integer(n)] == keys[IRI("a")])
    with kb.change() as change:
        change.add_facts(f"p({like_a - 1}) . q(a) .")
    with pytest.raises(EvaluationProblem, match="E005"):
        kb.query("?- p(X), Y := X + 1 .")
    assert kb.query("?- p(X), Y := X + 2 .").rows == ((integer(like_a - 1), integer(like_a + 1)),)


def test_decoding_needs_no_order() -> None:
    hashing = Hashing()
    table = columns_of(entries(TERMS), hashing)
    assert set(decoded(table).values()) == set(TERMS)


def test_a_term_that_one_rule_mentions_may_be_what_another_computes(
    make_engine: Callable[[Options], SparkEngine],
) -> None:
    text = """
        p(a, b) .
        r1: h(X, V) :- AGGREGATE(p(X, Y), W := concat("t", "u")) ON X WITH MAX(W) AS V .
        r2: q(X, Y) :- p(X, Y), Y != "tu" .
    """
    evaluated = evaluate_text(text, engine=make_engine(Options(strategy="rounds")))
    assert evaluated.facts() == ['h(a, "tu")', "q(a, b)"]


def test_what_rules_of_a_store_mention_is_known_when_it_is_written(
    spark: SparkEngine, tmp_path: Path
) -> None:
    assert spark.jobs.cores == 2
    with ze.open(tmp_path / "s", create=True) as kb, kb.change() as change:
        change.add_rules("""
            r1: h(X, V) :- p(X, Y), V := concat("t", "u") .
            r2: q(X, Y) :- p(X, Y), Y != "tu" .
            r3: w(X, Y) :- z(X, Y) .
        """)
    with ze.open(tmp_path / "s", engine="spark") as kb:
        # The first change visits other rules; the second computes what one of these mentions.
        for facts in ("z(c, d) .", "p(a, b) ."):
            with kb.change() as change:
                change.add_facts(facts)
        assert kb.query("?- h(X, V) .").rows == ((IRI("a"), Literal("tu")),)
        assert kb.verify("reference").ok
