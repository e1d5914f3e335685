"""A change report as people see it: a few lines that count, however much the change did."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import zodiacedge as ze
from zodiacedge.engine.api import Dropped, NodeRun, Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import Diagnostic
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.kb.report import ChangeReport
from zodiacedge.language.ast import Predicate
from zodiacedge.language.parser import parse_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import Engine
    from zodiacedge.language.ast import Fact, Rule


class Counted:
    """A net change that was counted and lists nothing."""

    def __init__(self, before: Mapping[Predicate, int], after: Mapping[Predicate, int]) -> None:
        grown = {p: after.get(p, 0) - before.get(p, 0) for p in {*before, *after}}
        self._came = {p: n for p, n in grown.items() if n > 0}
        self._went = {p: -n for p, n in grown.items() if n < 0}

    def counts(self) -> tuple[Mapping[Predicate, int], Mapping[Predicate, int]]:
        return self._came, self._went

    def facts(self, wanted: object = None) -> tuple[frozenset[Fact], frozenset[Fact]]:
        raise AssertionError(wanted)


def report(
    before: Mapping[Predicate, int],
    after: Mapping[Predicate, int],
    *,
    rules: tuple[Rule, ...] = (),
    dropped: Mapping[str, Dropped] | None = None,
    warnings: tuple[Diagnostic, ...] = (),
) -> ChangeReport:
    return ChangeReport(
        7,
        8,
        rules,
        rules[:1],
        1_200,
        3,
        Counted(before, after),
        (NodeRun(("r",), 2, 5, 0.1),),
        dropped or {},
        warnings,
        0.25,
    )


def test_the_lines_count_what_came_and_went() -> None:
    rules = parse_program("r1: p(X) :- q(X) . p(X) :- r(X), s(X) .").rules
    before = {Predicate("p", 1): 5, Predicate("gone", 2): 2, Predicate("same", 1): 9}
    after = {Predicate("p", 1): 6, Predicate("new", 3): 1_500, Predicate("same", 1): 9}
    found = report(
        before,
        after,
        rules=rules,
        dropped={"r1": Dropped(1, "division by zero (X = 1)")},
        warnings=(Diagnostic("W012", "facts to add that are there already: 1", severity="warning"),),
    )
    assert str(found).splitlines() == [
        "version 7 to 8 in 0.250 s",
        "rules: 2 added (r1, p(X) :- r(X), s(X)), 1 removed (r1)",
        "explicit facts: 1,200 added, 3 removed",
        "visible facts: +1,501 -2 (new +1,500, gone -2, p +1)",
        "visited: 1 hyper-node (evaluated 1)",
        "dropped: 1 binding of rule r1, for example division by zero (X = 1)",
        "warning W012: facts to add that are there already: 1",
    ]
    assert found.net_change() == {"gone": -2, "new": 1_500, "p": 1}


def test_a_large_change_is_a_few_lines_too() -> None:
    rules = parse_program("".join(f"p{i}(X) :- {'q' * 200}{i}(X) .\n" for i in range(1_000))).rules
    found = report(
        {},
        {Predicate(f"p{i}", 1): i for i in range(1_000)},
        rules=rules,
        dropped={f"rule {i}": Dropped(i, "an example") for i in range(100)},
        warnings=tuple(Diagnostic("W002", "again", severity="warning") for _ in range(100)),
    )
    text = str(found)
    assert "(p999 +999, p998 +998, p997 +997, p996 +996, p995 +995, p994 +994, and 993 more)" in text
    assert len(text.splitlines()) == 5 + 7 + 7
    assert max(map(len, text.splitlines())) < 600


def test_the_reason_for_a_way_is_told_whole() -> None:
    parts = "in parts: 5,000 rows, one task takes 4,000; tc by argument 1"
    task = "maintained, in one task on 17 rows, looked up by key: 600,000 rows in all"
    nodes = (
        NodeRun(("t", "b"), 3, 5, 0.1, parts),
        NodeRun(("u",), 3, 5, 0.1, parts),
        NodeRun(("v",), 1, 2, 0.1, task),
        NodeRun(("w",), 1, 2, 0.1, "evaluated, much changed"),
    )
    assert str(replace(report({}, {}), nodes=nodes)).splitlines()[4:] == [
        "visited: 4 hyper-nodes (in parts 2, maintained 1, evaluated 1)",
        f"{parts} (t, b, u)",
        f"{task} (v)",
    ]


def test_a_name_with_two_arities_is_told_with_them() -> None:
    found = report({Predicate("p", 1): 4}, {Predicate("p", 1): 2, Predicate("p", 2): 1})
    assert found.net_change() == {"p/1": -2, "p/2": 1}


def test_the_report_of_a_knowledge_base_agrees_with_its_facts() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("tc(X, Y) :- e(X, Y) . step: tc(X, Z) :- tc(X, Y), e(Y, Z) . e(1, 2) . e(2, 3) .")
    with kb.change() as c:
        c.remove_rules("step")
        c.add_facts("e(3, 4) .")
    assert re.fullmatch(
        r"version 1 to 2 in \d+\.\d{3} s\n"
        r"rules: 0 added, 1 removed \(step\)\n"
        r"explicit facts: 1 added, 0 removed\n"
        r"visible facts: \+2 -1 \(tc \+1 -1, e \+1\)\n"
        r"visited: \d hyper-nodes?( \(.*\))?",
        str(c.report),
    )
    assert Counter(f.relation for f in c.report.inserted) == {"e": 1, "tc": 1}
    assert repr(c.report) == "<ChangeReport version 1 to 2>"


def test_what_comes_and_goes_of_one_predicate_is_told_apart(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as c:
        c.add_facts("p(1) .")
    with kb.change() as c:
        c.remove_facts("p(1) .")
        c.add_facts("p(2) . p(3) .")
    assert "visible facts: +2 -1 (p +2 -1)" in str(c.report)


RULES = "r1: p(X, Y) :- e(X, Y) .  r2: p(X, Y) :- p(X, Z), e(Z, Y) .  r3: q(X) :- p(X, Y), not s(X) ."


def moved(report: ChangeReport) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return what nodes gained and lost, as machines are told, of those that did."""
    nodes = json.loads(json.dumps(report.to_dict()))["nodes"]
    found = {tuple(sorted(one["rules"])): (one["inserted"], one["deleted"]) for one in nodes}
    return {rules: counts for rules, counts in found.items() if any(counts)}


def test_machines_are_told_what_each_node_gained_and_lost(engine: Engine) -> None:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as first:
        first.add_rules(RULES)
        first.add_facts("e(a, b) . e(b, c) .")
    tried = kb.dry_run(remove_rules="r1", add_facts="s(a) .")
    with kb.change() as second:
        second.remove_facts("e(b, c) .")
        second.add_facts("e(a, d) . s(b) .")
    with kb.change() as third:
        third.remove_rules("r3")
        third.remove_rules("r2")
    # Asked for when later changes have altered what is there.
    assert moved(first.report) == {("r1",): (2, 0), ("r2",): (1, 0), ("r3",): (2, 0)}
    assert moved(tried) == {("r1",): (0, 2), ("r2",): (0, 1), ("r3",): (0, 2)}
    assert moved(second.report) == {("r1",): (1, 1), ("r2",): (0, 1), ("r3",): (0, 1)}
    assert moved(third.report) == {("r3",): (0, 1)}


def test_what_several_nodes_had_before_they_came_together_is_not_gained() -> None:
    # The largest of three is taken as it is, the others are copied into it, with ten facts that both have.
    rules = "a: p(X) :- e1(X), s(X) .  b: p(X) :- e2(X), s(X) .  c: p(X) :- e3(X), s(X) ."
    facts = [
        (name, n)
        for name, some in (("e1", range(50)), ("e2", range(50, 60)), ("e3", range(50, 60)))
        for n in some
    ]
    told = []
    for engine in (
        ReferenceEngine(),
        EmbeddedEngine(strategy="maintain"),
        EmbeddedEngine(strategy="recompute"),
    ):
        kb = KnowledgeBase(engine, Settings())
        with kb.change() as c:
            c.add_rules(rules)
            c.add_facts([*facts, *(("s", n) for n in range(60))])
        with kb.change() as c:
            c.add_rules("m: s(X) :- p(X) .")
        told.append(moved(c.report))
    assert told == [{("a", "b", "c", "m"): (60, 0)}] * 3
