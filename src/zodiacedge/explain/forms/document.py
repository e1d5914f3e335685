"""An explanation as JSON, for programs: IRIs in full, values as in the JSON rows of queries.

The document is stable; fields may be added to it, but none changes its meaning. `docs/explain.md` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.explain.forms.words import is_written
from zodiacedge.explain.history import History
from zodiacedge.explain.missing import (
    FailedComparison,
    HeadDiffers,
    NoBindings,
    NoResult,
    NoSuchFact,
    OtherValue,
    PresentFact,
    WhyNot,
)
from zodiacedge.explain.proof import (
    AbsentPremise,
    AggregatePremise,
    BindingPremise,
    ComparisonPremise,
    Explicit,
    FactPremise,
    Proof,
    Step,
)
from zodiacedge.io import json_cell
from zodiacedge.language.printer import format_atom, format_conjunct, format_rule
from zodiacedge.util.json_text import RawJson, json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.explain.forms.outlines import Explained
    from zodiacedge.explain.history import Edit, FactChange
    from zodiacedge.explain.missing import Attempt, Failing, RuleFailure
    from zodiacedge.explain.proof import Premise, Statement, Support, Values
    from zodiacedge.language.ast import Fact, Rule
    from zodiacedge.terms import Term

VERSION = 1
_Json = dict[str, object]


def to_json(answer: Explained) -> str:
    """Return the document as text."""
    return json_text(document(answer))


def document(answer: Explained) -> _Json:
    """Return the document; values that JSON cannot hold exactly are texts of JSON (`RawJson`)."""
    match answer:
        case Proof():
            return _headed("proof", _proof(answer))
        case WhyNot():
            return _headed("why-not", _missing(answer))
        case History():
            return _headed("history", _history(answer))


def _headed(kind: str, fields: _Json) -> _Json:
    return {"format": "zodiacedge-explanation", "version": VERSION, "kind": kind, **fields}


# Proofs.


def _proof(proof: Proof) -> _Json:
    ids: dict[Fact, int] = {}
    facts: list[_Json] = []
    rules: dict[str, Rule] = {s.key: s.rule for s in proof.steps()}
    rule_ids = {key: number for number, key in enumerate(rules)}
    for support in proof.in_order():
        ids[support.fact] = len(facts)
        facts.append({"id": len(facts), **_fact(support.fact), **_support(support, ids, rule_ids)})
    return {
        "of_version": proof.version,
        "asked": [ids[fact] for fact in proof.facts],
        "height": proof.height,
        "least": proof.least,
        "complete": proof.complete,
        "more": proof.more,
        "facts": facts,
        "rules": _rules(rules),
    }


def _support(support: Support, ids: Mapping[Fact, int], rule_ids: Mapping[str, int]) -> _Json:
    match support:
        case Explicit(statement=statement):
            return {"kind": "explicit", "statement": _statement(statement)}
        case Step(key=key, values=values, premises=premises, height=height):
            return {
                "kind": "derived",
                "height": height,
                "rule": rule_ids[key],
                "values": _values(values),
                "premises": [_premise(premise, ids) for premise in premises],
            }
        case _:
            return {"kind": "unexplained"}


def _premise(premise: Premise, ids: Mapping[Fact, int] | None) -> _Json:
    """Return a premise; a fact is its id in a proof, and written out elsewhere."""
    match premise:
        case FactPremise(atom=atom, fact=fact):
            shown = _fact(fact) if ids is None else ids[fact]
            return {"kind": "fact", "text": format_atom(atom), "fact": shown}
        case AbsentPremise(atom=atom, pattern=pattern):
            return {"kind": "absent", "text": f"not {format_atom(atom)}", "pattern": format_atom(pattern)}
        case ComparisonPremise():
            return _comparison(premise)
        case BindingPremise(binding=binding, filled=filled, value=value):
            return {
                "kind": "binding",
                "text": format_conjunct(binding),
                "filled": format_conjunct(filled),
                "variable": binding.variable.name,
                "value": _value(value),
            }
        case AggregatePremise(aggregate=aggregate, group=group, results=results, bindings=bindings):
            return {
                "kind": "aggregate",
                "text": format_conjunct(aggregate),
                "group": _values(group),
                "results": [
                    {"function": fold.op, "variable": fold.target.name, "value": _value(result)}
                    for fold, result in results
                ],
                "bindings": bindings,
                "shown": [
                    {
                        "values": _values(row.values),
                        "premises": [_premise(inner, ids) for inner in row.premises],
                    }
                    for row in premise.shown
                ],
            }


def _comparison(premise: ComparisonPremise) -> _Json:
    return {
        "kind": "comparison",
        "text": format_conjunct(premise.comparison),
        "filled": format_conjunct(premise.filled),
        "left": _value(premise.left),
        "operator": premise.comparison.operator,
        "right": _value(premise.right),
    }


# Why not.


def _missing(answer: WhyNot) -> _Json:
    return {
        "of_version": answer.version,
        "asked": format_atom(answer.atom),
        "note": answer.note,
        "complete": answer.complete,
        "failures": [_failure(failure, number) for number, failure in enumerate(answer.rules)],
        "next_questions": [format_atom(atom) for atom in answer.next_questions],
        "rules": _rules({failure.key: failure.rule for failure in answer.rules}),
    }


def _failure(failure: RuleFailure, rule: int) -> _Json:
    if isinstance(failure, HeadDiffers):
        return {
            "kind": "head",
            "rule": rule,
            "position": failure.position,
            "constant": _value(failure.constant),
            "wanted": _value(failure.wanted),
        }
    return {
        "kind": "body",
        "rule": rule,
        "attempts": [_attempt(attempt) for attempt in failure.attempts],
    }


def _attempt(attempt: Attempt) -> _Json:
    return {
        "values": _values(attempt.values),
        "holds": [_premise(premise, None) for premise in attempt.holds],
        "failing": [_failing(failing) for failing in attempt.failing],
        "open": [format_conjunct(conjunct) for conjunct in attempt.open],
    }


def _failing(failing: Failing) -> _Json:
    match failing:
        case NoSuchFact(atom=atom, pattern=pattern, under_question=under_question):
            return {
                "kind": "fact",
                "text": format_atom(atom),
                "pattern": format_atom(pattern),
                "under_question": under_question,
            }
        case PresentFact(atom=atom, fact=fact, statement=statement, explicit=explicit):
            return {
                "kind": "absent",
                "text": f"not {format_atom(atom)}",
                "fact": _fact(fact),
                "explicit": explicit,
                "statement": _statement(statement),
            }
        case FailedComparison(premise=premise):
            return _comparison(premise)
        case NoResult(conjunct=conjunct, filled=filled, reason=reason):
            return {
                "kind": "no value",
                "text": format_conjunct(conjunct),
                "filled": format_conjunct(filled),
                "reason": reason,
            }
        case OtherValue(conjunct=conjunct, variable=variable, value=value, wanted=wanted):
            return {
                "kind": "other value",
                "text": format_conjunct(conjunct),
                "variable": variable.name,
                "value": _value(value),
                "wanted": _value(wanted),
            }
        case NoBindings(aggregate=aggregate, group=group):
            return {"kind": "no bindings", "text": format_conjunct(aggregate), "group": _values(group)}


# Since when.


def _history(answer: History) -> _Json:
    return {
        "of_version": answer.version,
        "asked": _fact(answer.fact),
        "there": answer.there,
        "since": answer.since,
        "complete": answer.complete,
        "changes": [_change(change) for change in answer.changes],
        "note": answer.note,
    }


def _change(change: FactChange) -> _Json:
    return {
        "version": change.version,
        "inserted": change.inserted,
        "edit": _edit(change.edit),
        "proof": None if change.proof is None else _proof(change.proof),
    }


def _edit(edit: Edit) -> _Json:
    return {
        "author": edit.author,
        "time": edit.time.isoformat() if edit.time else None,
        "message": edit.message,
        "direct": edit.direct,
        "stream": None if edit.stream is None else {"name": edit.stream[0], "batch": edit.stream[1]},
        "rules_added": [format_rule(rule) for rule in edit.rules_added],
        "rules_removed": [format_rule(rule) for rule in edit.rules_removed],
        "facts_added": [_fact(fact) for fact in edit.facts_added],
        "facts_removed": [_fact(fact) for fact in edit.facts_removed],
        "all_facts_added": edit.all_facts_added,
        "all_facts_removed": edit.all_facts_removed,
    }


# Parts.


def _fact(fact: Fact) -> _Json:
    name, arity = fact.predicate
    return {"predicate": name, "args": [_value(term) for term in fact.args[:arity]]}


def _value(term: Term) -> RawJson:
    return RawJson(json_cell(term))


def _values(values: Values) -> _Json:
    return {variable.name: _value(value) for variable, value in values.items() if is_written(variable)}


def _statement(statement: Statement | None) -> _Json | None:
    if statement is None:
        return None
    return {
        "version": statement.version,
        "author": statement.author,
        "time": statement.time.isoformat() if statement.time else None,
        "message": statement.message,
    }


def _rules(rules: Mapping[str, Rule]) -> list[_Json]:
    return [
        {"id": number, "key": key, "label": rule.label or None, "text": format_rule(rule)}
        for number, (key, rule) in enumerate(rules.items())
    ]
