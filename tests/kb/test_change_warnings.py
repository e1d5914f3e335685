"""The warnings of a change: those about the rules that it adds, once each, with the facts that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["reference", "embedded"])
def kb(request: pytest.FixtureRequest) -> ze.KnowledgeBase:
    return ze.open(engine=request.param)


def warnings(kb: ze.KnowledgeBase, text: str) -> list[str]:
    """Return the warnings of a change, as code and line."""
    with kb.change() as c:
        c.add_rules(text)
    return [f"{w.code}:{w.span.source.position(w.span.start)[0]}" for w in c.report.warnings if w.span]


def codes(kb: ze.KnowledgeBase, text: str) -> list[str]:
    """Return the codes of the warnings of a change, those without a place in the text too."""
    with kb.change() as c:
        c.add_rules(text)
    return [w.code for w in c.report.warnings]


def test_a_warning_is_in_the_report_of_the_change_that_adds_the_rule(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "r1: p(X) :- q(X, Y) .") == ["W020:1"]
    assert warnings(kb, "s(X) :- p(X), q(X, X) .") == []
    assert warnings(kb, "p(X) :- q(X, Z) .") == ["W002:1"]


def test_warnings_are_in_the_order_of_the_text(kb: ze.KnowledgeBase) -> None:
    text = "n(Y) :- n(X), Y = X + 1 .\np(X) :- q(X, Y) .\np(Z) :- q(Z, Y) .\ns(Y) :- n(X), Y = max(X) ."
    assert warnings(kb, text) == ["W025:1", "W020:2", "W002:3", "W021:4"]


def test_a_comment_silences_a_warning(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "# lint: ignore W020, W002\np(X) :- q(X, Y) .") == []
    assert warnings(kb, "p(X) :- q(X, Y) .  # lint: ignore W002") == []
    assert warnings(kb, "p(X) :- q(X, Y) .") == ["W002:1"]


def test_a_dry_run_has_the_warnings_too(kb: ze.KnowledgeBase) -> None:
    assert [w.code for w in kb.dry_run(add_rules="p(X) :- q(X, Y) .").warnings] == ["W020"]


def test_facts_of_earlier_changes_state_a_class_or_a_property(kb: ze.KnowledgeBase, tmp_path: Path) -> None:
    warnings(kb, "near(a, b) .")
    assert warnings(kb, "p(X) :- near(X) .") == ["W022:1"]
    (tmp_path / "near.csv").write_text("a\n")
    with kb.change() as c:
        c.load(tmp_path / "near.csv")
    assert warnings(kb, "r(X) :- near(X) .") == []


def test_rules_of_earlier_changes_define_a_class_or_a_property(kb: ze.KnowledgeBase) -> None:
    warnings(kb, "near(X, Y) :- next(X, Y) .")
    assert warnings(kb, "p(X) :- near(X) .") == ["W022:1"]
    warnings(kb, "rdf:type(X, C) :- kind(X, C) .")
    assert warnings(kb, "r(X) :- near(X) .") == []


def test_the_rule_that_closes_a_recursion_may_be_another_than_the_one_that_computes(
    kb: ze.KnowledgeBase,
) -> None:
    assert warnings(kb, "a(X) :- b(X) .") == []
    assert warnings(kb, "b(Y) :- a(X), Y := X * 2 .") == ["W025:1"]


IRI_FACTS = "@prefix ex: <http://e/> . ex:temp(ex:wt1, 31) . ex:Turbine(ex:wt1) ."


def test_a_predicate_with_the_local_name_of_a_stored_one_is_a_mistake(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, f"{IRI_FACTS}\nhot(X) :- temp(X, T), T > 30 .") == ["W026:2"]
    assert warnings(kb, "big(X) :- temp(X, T), turbine(X), T > 90 .") == ["W026:1", "W026:1"]
    assert warnings(kb, "big(X) :- ex:temp(X, T), T > 90 .") == []


def test_a_predicate_that_only_its_own_facts_feed_is_not_defined(kb: ze.KnowledgeBase) -> None:
    near = "<http://e/near>(a, b) .  <http://e/near>(b, c) .\n"
    assert warnings(kb, f"{near}near(X, Y) :- near(Y, X) .") == ["W026:2"]
    assert warnings(kb, "near(X, Z) :- near(X, Y), near(Y, Z) .") == ["W026:1"]
    assert warnings(kb, "near(X, Y) :- <http://e/near>(X, Y) .") == []
    assert warnings(kb, "near(X, X) :- near(X, Y), near(Y, X) .") == []


def test_a_rule_that_closes_facts_over_is_fine(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "<http://e/near>(a, b) .  near(a, b) .") == []
    assert warnings(kb, "near(X, Y) :- near(Y, X) .") == []


def test_facts_of_a_namesake_may_come_after_the_rule(kb: ze.KnowledgeBase) -> None:
    assert warnings(kb, "hot(X) :- temp(X, T), T > 30 .\nwarm(X) :- temp(X, T), T > 20 .") == []
    assert warnings(kb, IRI_FACTS) == ["W026:1"]
    # The next facts of the same predicate are no news.
    assert warnings(kb, "ex:temp(ex:wt2, 32) .") == []


@pytest.mark.parametrize(
    ("rules", "facts"),
    [
        ("hot(X) :- temp(X, T), T > 30 .", f"{IRI_FACTS} temp(a, 5) ."),
        ("hot(X) :- temp(X, T), T > 30 . temp(a, 5) .", IRI_FACTS),
        ("hot(X) :- temp(X, T), T > 30 . temp(X, T) :- t(X, T) .", IRI_FACTS),
        ("<http://e/temp>(X, T) :- temp(X, T) .", IRI_FACTS),
        ("hot(X) :- temp(X, T), T > 30 .  # lint: ignore W026", IRI_FACTS),
        ("p(X) :- turbine(X) . rdf:type(X, C) :- kind(X, C) .", IRI_FACTS),
        ("p(X) :- q(X), s(X, _) .", "@prefix ex: <http://e/> . ex:r(ex:a) ."),
    ],
)
def test_facts_without_a_misled_rule_are_no_mistake(kb: ze.KnowledgeBase, rules: str, facts: str) -> None:
    assert warnings(kb, rules) == []
    assert warnings(kb, facts) == []


@pytest.mark.parametrize("first", ["rules", "facts"])
def test_a_text_where_a_time_is_looks_like_a_moment(kb: ze.KnowledgeBase, first: str) -> None:
    timed = "@time reading 2 .\nhot(X) :- reading(X, _) within 10 min ."
    facts = 'reading(a, "2026-01-01T12:00:00Z") . note(a, "2026-01-01") .'
    if first == "rules":
        assert codes(kb, timed) == []
    assert codes(kb, facts if first == "rules" else f"{facts}\n{timed}") == ["W032"]
    # The next facts of the same predicate are no news.
    assert codes(kb, 'reading(b, "2026-01-01T12:00:00Z") .') == []


@pytest.mark.parametrize(
    "fact", ['reading(a, "2026-01-01T12:00:00Z"^^xsd:dateTime) .', 'reading(a, "soon") .', "other(a, 2) ."]
)
def test_what_is_no_text_of_a_moment_is_not_warned_of(kb: ze.KnowledgeBase, fact: str) -> None:
    assert codes(kb, "@time reading 2 .\nhot(X) :- reading(X, _) within 10 min .") == []
    assert codes(kb, fact) == []


def test_a_query_of_a_namesake_says_what_is_there(kb: ze.KnowledgeBase) -> None:
    warnings(kb, f"{IRI_FACTS} hot(X) :- temp(X, T), T > 30 .")
    for query in ("temp(X, T)", "turbine(X)", "ex:hot(X), ex:temp(X, _)", "not <https://e/temp>(ex:wt1, 3)"):
        (warning,) = kb.query(query).warnings
        assert warning.code == "W026"
    # Rules that derive all classes do not hide it.
    warnings(kb, "rdf:type(X, C) :- rdf:type(X, B), sub(B, C) .")
    assert [w.code for w in kb.query("turbine(X)").warnings] == ["W026"]
    assert kb.query("temp(X, T)").warnings[0].message == (
        "no fact or rule has temp/2; did you mean <http://e/temp>?"
    )
    assert kb.query("ex:temp(X, T), hot(X)").warnings == ()


@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_warnings_are_told_before_the_evaluation_that_they_are_about(engine: str) -> None:
    told: list[str] = []
    kb = ze.open(
        engine=engine, limits=ze.Limits(facts=50), warn=lambda found: told.extend(w.code for w in found)
    )
    with pytest.raises(ze.ZodiacError) as refused, kb.change() as c:
        c.add_rules("n(0) .  n(Y) :- n(X), Y := X + 1 .")
    assert refused.value.diagnostics[0].code == "E001"
    assert told == ["W025"]
    assert [w.code for w in kb.dry_run(add_rules="p(X) :- q(X, Y) .").warnings] == told[1:] == ["W020"]


def test_a_store_that_is_opened_again_tells_no_warnings_of_its_log(tmp_path: Path) -> None:
    told: list[ze.Diagnostic] = []
    writer = ze.open(tmp_path / "s", create=True, warn=told.extend)
    with writer.change() as c:
        c.add_rules("p(X) :- q(X, Y) .  q(a, b) .")
    assert [w.code for w in told] == ["W020"]
    # The writer is not closed, so the log has not been flushed.
    assert ze.open(tmp_path / "s", read_only=True, warn=told.extend).version == 1
    assert len(told) == 1
    writer.close()
