"""The rules that a change is compared with: no more than its checks need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from zodiacedge.kb.rule_base import RuleBase
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.parser import parse_program, parse_rule
from zodiacedge.util.cow_dict import CowDict

if TYPE_CHECKING:
    import pytest

CLASSES = "\n".join(f"C{n}(X) :- kind(X, {n}) ." for n in range(50))
SOLE = "rdf:type(wt1, C) :- AGGREGATE(kind(X, Y)) WITH MAX(Y) AS C ."
COUNTED = "total(N) :- AGGREGATE(kind(X, Y)) WITH COUNT(Y) AS N ."


def base(*texts: str) -> RuleBase:
    rules = parse_program("\n".join(texts)).rules
    return RuleBase().changed({rule_key(rule): rule for rule in rules}, ())


def test_an_aggregate_of_a_variable_class_is_compared_with_the_rules_of_all_classes() -> None:
    assert len(base(CLASSES, "p(X, Y) :- kind(X, Y) .").rivals([parse_rule(SOLE)])) == 50


def test_a_rule_of_a_class_is_compared_with_the_aggregates_that_derive_its_members() -> None:
    rules = [parse_rule("C7(X) :- kind(X, seven) .")]
    assert base(CLASSES, COUNTED).rivals(rules) == set()
    assert base(CLASSES, COUNTED, SOLE).rivals(rules) == {rule_key(parse_rule(SOLE))}


def test_a_rule_of_another_individual_or_predicate_is_compared_with_no_aggregate() -> None:
    rules = [parse_rule("C7(wt2) :- kind(wt2, seven) ."), parse_rule("p(X, Y) :- kind(X, Y) .")]
    assert base(CLASSES, COUNTED, SOLE).rivals(rules) == set()


def test_a_change_of_one_rule_visits_no_map_of_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = base(CLASSES, COUNTED)
    one = parse_rule("p(X, Y) :- kind(X, Y) .")

    def refuse(_map: object) -> NoReturn:
        raise AssertionError("all rules are visited")

    monkeypatch.setattr(CowDict, "__iter__", refuse)
    monkeypatch.setattr(CowDict, "_pairs", refuse)
    more = rules.changed({rule_key(one): one}, ())
    assert len(more.rules) == 52
    assert len(more.changed({}, (rule_key(one),)).rules) == 51
