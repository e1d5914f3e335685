"""The session format: what it holds, and what is said about a session that is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zodiacedge.cli.sessions.format import Expectation, SessionStep, findings, parse_session, shortfalls
from zodiacedge.errors import Diagnostic, SyntaxProblem
from zodiacedge.language.ast import Fact, Rule, fact
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import IRI, string

A, B = IRI("a"), IRI("b")


def only(text: str) -> SessionStep:
    (step,) = parse_session(text)
    return step


def problems(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(SyntaxProblem) as caught:
        parse_session(text, "s.session")
    found = []
    for one in caught.value.diagnostics:
        assert one.span
        assert one.span.source.name == "s.session"
        assert one.span.source.text == text
        found.append((one.code, *one.span.source.position(one.span.start)))
    return found


def texts(rules: tuple[str | Rule, ...]) -> list[str]:
    return [rule if isinstance(rule, str) else format_rule(rule) for rule in rules]


def test_a_step_holds_rules_and_facts_to_add_and_to_remove() -> None:
    change = only("begin\n+ r1: p(X) :- q(X) .\n+ q(a) .\n- q(b) .\n- r4\n- p(X) :- s(X) .\ncommit\n").change
    assert texts(change.add_rules) == ["r1: p(X) :- q(X) ."]
    assert change.add_facts == (fact("q", A),)
    assert change.remove_facts == (fact("q", B),)
    assert texts(change.remove_rules) == ["r4", "p(X) :- s(X) ."]


def test_a_step_expects_a_net_change() -> None:
    expected = only("begin\n+ q(a) .\ncommit\n+ q(a) .\n- p(b) .\ncount q 3\ncount p/2 0\n").expected
    assert expected == Expectation(
        frozenset({fact("q", A)}), frozenset({fact("p", B)}), "", (("q", 3), ("p/2", 0))
    )


def test_a_bare_commit_checks_nothing() -> None:
    assert only("begin\n+ q(a) .\ncommit\n").expected == Expectation()


def test_commit_none_expects_no_change() -> None:
    assert only("begin\n+ q(a) .\ncommit none\n").expected == Expectation(frozenset(), frozenset())


def test_refuse_expects_a_code() -> None:
    assert only("begin\n+ p(X, Y) :- q(X) .\nrefuse C001\ncount q 0").expected == Expectation(
        refused="C001", counts=(("q", 0),)
    )


def test_an_empty_session_has_no_steps() -> None:
    assert parse_session("") == ()
    assert parse_session("# nothing\n\n// at all\n@prefix ex: <http://e/> .\n") == ()


def test_a_statement_goes_over_several_lines() -> None:
    # Each of these lines could be taken for an entry of its own.
    text = "begin\n+ r1: p(X, Z) :- q(X, Y), Z := Y\n- 5\n, Y >\n+3\n, commit(X), begin(X)\n.\ncommit none\n"
    (rule,) = only(text).change.add_rules
    assert format_rule(rule) == "r1: p(X, Z) :- q(X, Y), Z := Y - 5, Y > 3, commit(X), begin(X) ."


def test_words_of_the_format_may_be_predicates() -> None:
    change = only("begin\n+ commit(a) .\n+ count(a, 3) .\n- begin(a) .\ncommit\n+ refuse(b) .\n").change
    assert [f.relation for f in change.add_facts if len(f.args) == 2 and f.relation == "count"] == ["count"]
    assert len(change.add_facts) == 2
    assert len(change.remove_facts) == 1


def test_strings_and_names_may_hold_what_ends_a_statement() -> None:
    text = 'begin\n+ p("a . \\n- r1\\ncommit # no comment") .\n+ p(<http://e/#a.b>) .\ncommit\n'
    change = only(text).change
    assert change.add_facts[0] == fact("p", string("a . \n- r1\ncommit # no comment"))
    assert change.add_facts[1] == fact("p", IRI("http://e/#a.b"))


def test_comments_may_stand_anywhere() -> None:
    text = """# first
    begin // here
    # there
    + p(a) . # - p(b) .
    - r1 # the label
    - r2// the other
    + q(X) # commit
       :- p(X) .
    commit # none
    + p(a) .
    count p 1 # two
    """
    step = only(text)
    assert step.change.add_facts == (fact("p", A),)
    assert texts(step.change.remove_rules) == ["r1", "r2"]
    assert step.expected == Expectation(frozenset({fact("p", A)}), frozenset(), "", (("p", 1),))


def test_entries_may_share_a_line() -> None:
    step = only("begin + p(a) . - p(b) . commit + p(a) . - p(b) .")
    assert step.change.add_facts == (fact("p", A),)
    assert step.expected.deleted == frozenset({fact("p", B)})


def test_a_label_may_hold_a_hyphen_and_is_alone_on_its_line() -> None:
    assert only("begin\n- wind-farm_2\ncommit").change.remove_rules == ("wind-farm_2",)
    assert only("begin\n- p()\n.\ncommit").change.remove_facts == (Fact("p", ()),)


def test_prefixes_hold_from_where_they_are_declared() -> None:
    text = (
        "@prefix ex: <http://e/> .\nbegin\n+ ex:p(ex:a, ex:b) .\ncommit\ncount ex:p 1\ncount <http://e/q> 0\n"
    )
    step = only(text)
    assert step.change.add_facts == (fact("http://e/p", IRI("http://e/a"), IRI("http://e/b")),)
    assert step.expected.counts == (("<http://e/p>", 1), ("<http://e/q>", 0))


def test_prefixes_may_come_from_outside() -> None:
    (step,) = parse_session("begin\n+ ex:p(a, b) .\ncommit\n", prefixes={"ex": "http://e/"})
    assert step.change.add_facts[0].relation == "http://e/p"


def test_windows_line_ends_are_fine() -> None:
    assert only("begin\r\n- r1\r\n+ p(a) .\r\ncommit none\r\ncount p 1\r\n").change.remove_rules == ("r1",)


def test_several_steps_know_their_places() -> None:
    steps = parse_session("begin\ncommit\n\nbegin\ncommit none\n", "s.session")
    assert [repr(step.span) for step in steps] == ["s.session:1:1", "s.session:4:1"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("+ p(a) .\ncommit\n", [("S001", 1, 1)]),
        ("begin\n+ p(a) .\n", [("S001", 1, 1)]),
        ("begin\nbegin\ncommit\n", [("S001", 1, 1)]),
        ("begin\ncommit\ncommit\n", [("S001", 3, 1)]),
        ("begin\nroll back\ncommit\n", [("S001", 2, 1)]),
        ("begin\ncommit all\n", [("S001", 2, 8)]),
        ("begin\nrefuse\n", [("S001", 1, 1), ("S001", 2, 1)]),
        ("begin\nrefuse later\n", [("S001", 1, 1), ("S001", 2, 1)]),
        ("begin\ncount p 3\ncommit\n", [("S001", 2, 1)]),
        ("begin\ncommit\ncount p\n", [("S001", 3, 1)]),
        ("begin\ncommit\ncount p many\n", [("S001", 3, 1)]),
        ("begin\ncommit\ncount ex:p 1\n", [("S001", 3, 1)]),
        ("begin\ncommit\n+ p(X) :- q(X) .\n", [("S001", 3, 1)]),
        ("begin\ncommit\n- r1\n", [("S001", 3, 1)]),
        ("begin\ncommit none\n+ p(a) .\n", [("S001", 3, 1)]),
        ("begin\nrefuse C001\n+ p(a) .\n", [("S001", 3, 1)]),
        ("begin\n  p(a) .\ncommit\n", [("S001", 2, 3)]),
        # What is wrong with a statement is said by the parser, at its place in the session.
        ("begin\n+ p(a,) .\ncommit\n", [("L001", 2, 7)]),
        ('begin\n+ p("open) .\n- q(b .\ncommit\n', [("L019", 2, 5), ("L001", 3, 7)]),
        ("begin\n+ r1: p(a) .\ncommit\n", [("L005", 2, 3)]),
        ("begin\n- p(X) .\ncommit\n", [("L010", 2, 3)]),
        ("begin\n+ p(a) .\ncommit\n+ p(X) .\n", [("L010", 4, 3)]),
        ("begin\n+ ex:p(a, b) .\ncommit\n", [("L018", 2, 3)]),
        # A statement that does not end takes in what follows, and the place where it should is named.
        ("begin\n+ p(a)\ncommit\n", [("S001", 1, 1), ("L001", 3, 1)]),
    ],
)
def test_every_mistake_has_its_place(text: str, found: list[tuple[str, int, int]]) -> None:
    assert problems(text) == found


def test_all_mistakes_are_found_at_once() -> None:
    text = "begin\n+ p(a,) .\nrollback\n+ q(b) .\ncommit\n- r1\nbegin\n+ ex:q(b) .\n"
    assert problems(text) == [("L001", 2, 7), ("S001", 3, 1), ("S001", 6, 1), ("S001", 7, 1), ("L018", 8, 3)]


def test_a_finding_shows_the_line_of_the_session() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_session("begin\n+ p(a,) .\ncommit\n", "s.session")
    assert "    2 | + p(a,) ." in str(caught.value)


def test_shortfalls_of_a_refusal() -> None:
    unsafe = [Diagnostic("C001", "unsafe"), Diagnostic("W001", "a warning", severity="warning")]
    assert shortfalls(Expectation(refused="C001"), unsafe, ()) == []
    assert shortfalls(Expectation(refused="G001"), unsafe, ()) == ["refused with C001, expected with G001"]
    assert shortfalls(Expectation(), unsafe, ()) == ["refused with C001, expected not at all"]
    assert shortfalls(Expectation(refused="C001", counts=(("p", 1),)), unsafe, ()) == [
        "p has 0 facts, expected 1"
    ]


def test_a_number_at_the_end_of_an_iri_is_no_arity() -> None:
    visible = [fact("http://e/p", A, A), fact("http://e/p/2", A), fact("p/2", A), fact("p", A, A)]
    text = "@prefix ex: <http://e/> .\nbegin\ncommit\n"
    names = (
        "<http://e/p/2>",
        "<http://e/p>/2",
        "<http://e/p/2>/1",
        "ex:p/2",
        "ex:p",
        "<p/2>",
        "p/2",
        "<p/2>/1",
    )
    expected = only(text + "".join(f"count {name} 1\n" for name in names)).expected
    assert len(expected.counts) == len(names)
    assert shortfalls(replace(expected, refused="C001"), [Diagnostic("C001", "")], visible) == []


def test_counts_are_by_name_or_by_name_and_arity() -> None:
    visible = [fact("p", A), fact("p", B), fact("p", A, B)]
    counts = (("p", 3), ("p/1", 2), ("p/2", 1), ("q", 0))
    assert shortfalls(Expectation(refused="C001", counts=counts), [Diagnostic("C001", "")], visible) == []


def told(step: SessionStep, outcome: list[Diagnostic], visible: list[Fact]) -> list[tuple[str, int, str]]:
    found = []
    for one in findings(step, outcome, visible):
        assert one.span
        found.append((one.code, one.span.source.position(one.span.start)[0], one.message))
    return found


def test_a_refusal_is_told_at_the_end_of_its_step_and_a_count_at_its_line() -> None:
    step = only("begin\n+ p(a) .\nrefuse C001\ncount p 0\ncount q 2\n")
    refused = [Diagnostic("C011", "two arities")]
    assert told(step, refused, [fact("q", A)]) == [
        ("S002", 3, "refused with C011, expected with C001"),
        ("S002", 5, "q has 1 facts, expected 2"),
    ]
    assert told(step, [Diagnostic("C001", "unbound")], [fact("q", A), fact("q", B)]) == []


def test_a_step_knows_where_its_facts_are_stated() -> None:
    change = only("begin\n+ p(a) .\n- p(b) .\n+ q(X) :- p(X) .\ncommit\n").change
    (atom,) = change.atoms
    assert atom.span
    assert atom.span.source.position(atom.span.start) == (2, 3)
