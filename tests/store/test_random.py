"""Random terms and random sessions: what comes out of a store is what went in, at every version."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import zodiacedge as ze
from store.conftest import abandon
from strategies import RandomSession, examples, sessions
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence
from zodiacedge.engine.embedded.state import EmbeddedState
from zodiacedge.kb.change import Change
from zodiacedge.language.ast import fact
from zodiacedge.language.canonical import rule_key
from zodiacedge.store.log.record import facts_in
from zodiacedge.store.store import FLUSH_BYTES
from zodiacedge.terms import BlankNode, from_python, iri, literal, string

if TYPE_CHECKING:
    from zodiacedge.terms import Term

PERSISTENCE = EmbeddedPersistence()
_DATATYPES = [
    f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("integer", "double", "dateTime", "date", "byte")
]
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


def terms() -> st.SearchStrategy[Term]:
    """Draw terms of every kind."""
    return st.one_of(
        st.from_regex(r"[a-zé/:#%]{0,8}", fullmatch=True).map(iri),
        st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True).map(BlankNode),
        _TEXT.map(string),
        st.tuples(_TEXT, st.sampled_from(["en", "de-ch"])).map(lambda pair: string(*pair)),
        st.integers(-(2**63), 2**63 - 1).map(from_python),
        st.floats(allow_nan=False, allow_infinity=False).map(from_python),
        st.decimals(-(10**6), 10**6, places=3).map(from_python),
        st.booleans().map(from_python),
        st.datetimes().map(from_python),
        st.tuples(_TEXT, st.sampled_from([*_DATATYPES, "http://e/t"])).map(lambda pair: literal(*pair)),
    )


@given(rows=st.lists(st.tuples(terms(), terms()), max_size=30))
def test_every_term_comes_back_a_column_at_a_time_and_one_by_one(rows: list[tuple[Term, Term]]) -> None:
    facts = {fact("p", *row) for row in rows} | {fact("c", row[0]) for row in rows}
    facts |= {fact("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", *row) for row in rows}
    state = EmbeddedEngine().materialise({}, ze.open().graph(), facts, ze.open().settings)
    assert isinstance(state, EmbeddedState)
    parts = list(PERSISTENCE.tables(state, {*PERSISTENCE.signatures(state, {})}))
    assert {one for part in parts for one in facts_in(*part)} == facts
    again = EmbeddedEngine().empty()
    batch = again.batch()
    for part in parts:
        PERSISTENCE.add_partition(batch, *part)
    assert frozenset(again.store.facts(batch.distinct())) == facts


def _changes(session: RandomSession) -> list[Change]:
    first = Change(session.program.rules, (), session.program.facts, ())
    return [
        first,
        *(Change(c.add_rules, c.remove_rules, c.add_facts, c.remove_facts) for c in session.changes),
    ]


def _segments(kb: ze.KnowledgeBase) -> dict[frozenset[str], frozenset[ze.Fact]]:
    return {frozenset(node.rules): kb.state.segment(frozenset(node.rules)) for node in kb.graph().order}


# A failing session is worth more than minutes of looking for a smaller one.
@settings(max_examples=examples(15, one_in=500), phases=(Phase.explicit, Phase.generate))
@given(
    session=sessions(most_changes=4),
    closing=st.lists(st.booleans(), min_size=5, max_size=5),
    beside=st.booleans(),
)
def test_a_store_that_is_closed_and_left_in_between_follows_one_in_memory(
    session: RandomSession, closing: list[bool], *, beside: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory, kb = ze.open(), ze.open(Path(folder) / "kb", create=True)
        facts = [memory.facts()]
        for change, flush in zip(_changes(session), closing, strict=False):
            assert kb.store is not None
            # Every change is flushed, beside what comes next.
            kb.store.flush_bytes = 0 if beside else FLUSH_BYTES
            expected, report = memory.apply(change), kb.apply(change)
            assert (report.inserted, report.deleted) == (expected.inserted, expected.deleted)
            if report.committed:
                facts.append(memory.facts())
            if flush:
                kb.close()
            else:
                abandon(kb)
            kb = ze.open(Path(folder) / "kb")
            assert kb.facts() == memory.facts()
            assert kb.explicit == memory.explicit
            assert [rule_key(rule) for rule in kb.rules] == [rule_key(rule) for rule in memory.rules]
            assert _segments(kb) == _segments(memory)
            assert isinstance(kb.state, EmbeddedState)
        for version, seen in enumerate(facts):
            assert kb.at(version).facts() == seen
        kb.rollback(0)
        assert kb.facts() == frozenset()
        assert kb.rules == ()
        kb.close()
