"""The key of a rule: a canonical text, independent of variable names, body order and label.

Two rules have the same key exactly when renaming variables and reordering conjuncts turns one into the
other. This module flattens a rule to rows of words and variables; `labelling` computes their canonical
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import CheckProblem, Diagnostic
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Rule,
    Unary,
    Variable,
    variables,
)
from zodiacedge.language.labelling import TooSymmetric, least_text
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

# A flattened conjunct: words and variables.
_Flat = tuple["str | Variable", ...]


class KeyedRule(NamedTuple):
    """The key of a rule, and its resolved form."""

    key: str
    resolved: Rule


def keyed(rule: Rule) -> KeyedRule:
    """Return the key and the resolved form of a checked rule; raise CheckProblem as `rule_key` does."""
    resolved = resolve(rule)
    return KeyedRule(rule_key(resolved), resolved)


def rule_key(rule: Rule) -> str:
    """Return the rule's key, or raise CheckProblem if it is too hard to compute."""
    number: dict[Variable, int] = {}
    try:
        return least_text(
            [
                tuple([number.setdefault(i, len(number)) if isinstance(i, Variable) else i for i in row])
                for row in _rows(rule)
            ]
        )
    except TooSymmetric:
        raise CheckProblem(
            Diagnostic(
                "C014",
                "the variables of this body are too much alike to be told apart",
                "split the rule, with a predicate for each part",
                rule.span,
            )
        ) from None


def relabelled(removed: Iterable[Rule], added: Iterable[Rule]) -> tuple[tuple[Rule, Rule], ...]:
    """Return the rules that a change removes with one label and adds with another: before and after."""
    former = {(rule.head, rule.body): rule for rule in removed}
    if not former:
        return ()
    pairs = ((former.get((rule.head, rule.body)), rule) for rule in added)
    return tuple((before, after) for before, after in pairs if before and before.label != after.label)


def _rows(rule: Rule) -> list[_Flat]:
    outer = [c for c in rule.body if not isinstance(c, Aggregate)]
    rows = [("head", *_flat(rule.head)), *(("body", *_flat(c)) for c in outer)]
    aggregate = rule.aggregate
    if aggregate:
        # Only groups and targets are visible outside: other inner variables are renamed apart.
        shared = set(aggregate.columns)
        inner = {v for c in aggregate.body for v in variables(c)}
        inner.update(aggregate.arguments)
        renamed = {v: Variable(f"inner {v.name}") for v in inner - shared}
        rows += [
            ("inner", *(renamed.get(i, i) if isinstance(i, Variable) else i for i in _flat(c)))
            for c in aggregate.body
        ]
        rows += [("on", v) for v in aggregate.groups]
        rows += [
            (
                f"with {fold.op} {fold.distinct} {fold.registered}",
                *(renamed.get(v, v) for v in fold.arguments),
                fold.target,
            )
            for fold in aggregate.folds
        ]
    return list(dict.fromkeys(rows))


def _flat(node: Conjunct | Expression) -> _Flat:
    match node:
        case Variable():
            return (node,)
        case Atom(relation=relation, args=args):
            within = f" within {node.within!r}" if node.within else ""
            return (f"atom {relation!r} {len(args)}{within}", *(i for a in args for i in _flat(a)))
        case Negation(atom=inner):
            return ("not", *_flat(inner))
        case Comparison(left=left, operator=operator, right=right):
            return (f"compare {operator}", *_flat(left), "with", *_flat(right))
        case Binding(variable=variable, expression=expression):
            return ("bind", variable, *_flat(expression))
        case Unary(operand=operand):
            return ("minus", *_flat(operand))
        case Binary(operator=operator, left=left, right=right):
            return (f"{operator} (", *_flat(left), ")", *_flat(right))
        case Call(function=function, args=args, registered=registered):
            inside = (i for a in args for i in (*_flat(a), ";"))
            return (f"call {function} {registered} {len(args)}", *inside)
        case _:
            return (repr(node),)
