"""The prefixes of a knowledge base hold wherever a name is given outside a program text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import zodiacedge as ze
from zodiacedge.errors import LoadProblem, UsageProblem
from zodiacedge.language.ast import fact
from zodiacedge.terms import IRI, integer

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.kb.knowledge_base import KnowledgeBase

RULES = "@prefix ex: <http://e/> .  ex:hot(T) :- ex:reading(T, C), C > 80 ."
HOT = fact("http://e/reading", IRI("http://e/wt1"), integer(93))


@pytest.fixture
def kb() -> KnowledgeBase:
    """Rules over predicates with a prefix."""
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(RULES)
    return kb


def test_rows_tables_and_files_name_their_relation_with_a_prefix(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("<http://e/wt3>,83\n")
    with kb.change() as c:
        c.add_facts([("ex:reading", kb.iri("ex:wt1"), 93)])
        c.add_facts([(kb.iri("ex:wt2"), 92)], relation="ex:reading")
        c.load(f"ex:reading={tmp_path / 'day.csv'}")
        c.add_facts(pa.table({"t": ["<http://e/wt4>"], "c": [84]}), "ex:reading")
    assert kb.explicit_counts() == {"http://e/reading": 4}
    assert len(kb.query("?- ex:hot(T) .")) == 4
    with kb.change() as c:
        c.remove_facts([("ex:reading", kb.iri("ex:wt1"), 93)])
        c.remove_facts([(kb.iri("ex:wt2"), 92)], relation=ze.iri("http://e/reading"))
        c.unload(f"ex:reading={tmp_path / 'day.csv'}")
    assert kb.explicit_counts() == {"http://e/reading": 1}


def test_a_prefix_holds_in_the_change_that_declares_it() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules(RULES)
        c.add_facts([("ex:reading", c.iri("ex:wt1"), 93)])
    assert kb.explicit == {HOT}


def test_a_prefix_of_a_store_holds_when_it_is_opened_again(tmp_path: Path) -> None:
    with ze.open(tmp_path / "kb", create=True) as kb, kb.change() as c:
        c.add_rules(RULES)
    with ze.open(tmp_path / "kb") as kb:
        with kb.change() as c:
            c.add_facts([("ex:reading", kb.iri("ex:wt1"), 93)])
        assert kb.explicit == {HOT}


@pytest.mark.parametrize(
    "name", ["http://e/reading", "<http://e/reading>", "ex:reading", IRI("http://e/reading")]
)
def test_a_full_name_is_the_same_predicate(kb: KnowledgeBase, name: str | IRI) -> None:
    with kb.change() as c:
        c.add_facts([(name, kb.iri("ex:wt1"), 93)])
    assert kb.explicit == {HOT}


@pytest.mark.parametrize("name", ["urn:farm:reading", "tag:e,2024:reading", "<x:reading>", "reading", "été"])
def test_other_names_stay_as_they_are(kb: KnowledgeBase, name: str) -> None:
    with kb.change() as c:
        c.add_facts([(name, 1, 2)])
    assert list(kb.explicit_counts()) == [name.strip("<>")]


def test_a_prefix_that_is_not_declared_is_refused(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("1,2\n")
    change = kb.change()
    for call in (
        lambda: change.add_facts([("farm:reading", 1, 2)]),
        lambda: change.add_facts([(1, 2)], "farm:reading"),
        lambda: change.load(f"farm:reading={tmp_path / 'day.csv'}"),
        lambda: kb.iri("farm:wt1"),
        lambda: kb.subscribe("farm:reading", print),
    ):
        with pytest.raises(UsageProblem, match=r"U012.*no prefix farm:(.|\n)*write the whole IRI: <http:"):
            call()
    with pytest.raises(UsageProblem, match=r"did you mean ex:\?"):
        kb.change().add_facts([("exx:reading", 1, 2)])


@pytest.mark.parametrize("row", [("", 1), (IRI(""), 1), ("<>", 1, 2), ze.Fact("", (IRI("a"), IRI("b")))])
def test_a_predicate_without_a_name_is_refused(row: tuple[object, ...] | ze.Fact) -> None:
    with pytest.raises(LoadProblem, match="I006: '' cannot be the name of a relation"):
        ze.open().change().add_facts([row])


def test_facts_go_from_one_knowledge_base_to_another(kb: KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts([("ex:reading", kb.iri("ex:wt1"), 93)])
    other = ze.open()
    with other.change() as c:
        c.add_facts(kb.facts())
    assert other.explicit == {HOT, fact("http://e/hot", IRI("http://e/wt1"))}
    with other.change() as c:
        c.remove_facts(f for f in kb.facts() if f.predicate.arity == 2)
    assert other.explicit == {fact("http://e/hot", IRI("http://e/wt1"))}


def test_a_fact_with_a_relation_is_refused() -> None:
    with pytest.raises(LoadProblem, match="I013: row 2 is no fact: a Fact names its relation itself"):
        ze.open().change().add_facts([(1, 2), HOT], relation="q")


def test_rules_come_from_the_file_of_a_path(tmp_path: Path) -> None:
    good, bad = tmp_path / "farm.rules", tmp_path / "bad.rules"
    good.write_text("\ufeffhot: hot(T) :- reading(T, C), C > 80 .\nreading(wt1, 93) .\n", encoding="utf-8")
    bad.write_text("hot(T) :- reading(T, C) C > 80 .\n")
    kb = ze.open()
    assert len(kb.dry_run(add_rules=good).inserted) == 2
    with kb.change() as c:
        c.add_rules(good)
    assert len(kb.query("?- hot(T) .")) == 1
    with pytest.raises(ze.ZodiacError, match=r"bad\.rules:1:25: error L001"):
        kb.change().add_rules(bad)
    with kb.change() as c:
        c.remove_rules(good)
    assert (kb.rules, kb.explicit) == ((), frozenset())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.rules", None, "there is no file .*nowhere.rules"),
        ("latin.rules", b"p(\xe9) .", "latin.rules is not UTF-8 text: byte 2 is 0xe9"),
        (".", None, "cannot be read: Is a directory"),
    ],
)
def test_a_rule_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadProblem, match=f"U004: .*{message}"):
        ze.open().change().add_rules(tmp_path / name)


def test_a_prefix_that_gets_another_meaning_is_a_warning() -> None:
    kb = ze.open()
    for text, codes in (
        ("@prefix ex: <http://a/> . ex:p(1, 2) .", []),
        ("@prefix ex: <http://a/> . ex:p(3, 4) .", []),
        ("@prefix ex: <http://b/> . ex:p(1, 2) .", ["W019"]),
    ):
        with kb.change() as change:
            change.add_rules(text)
        assert [warning.code for warning in change.report.warnings] == codes
    assert "http://a/" in change.report.warnings[0].message
