"""The identity of a rule: its text up to variable names, the order of the body, and the label.

Two rules get the same key exactly when renaming variables and reordering conjuncts makes one the
other. Here a rule is written flat, as a set of rows of words and variables; `labelling` finds the text
of such a set that does not depend on names.
"""

from __future__ import annotations

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
from zodiacedge.language.labelling import TooAlike, least_text

# A conjunct written flat: words, with a variable where a name is to be filled in.
_Flat = tuple["str | Variable", ...]


def rule_key(rule: Rule) -> str:
    """Return the rule's identity as a string, or raise CheckProblem where it cannot be found."""
    number: dict[Variable, int] = {}
    try:
        return least_text(
            [
                tuple([number.setdefault(i, len(number)) if isinstance(i, Variable) else i for i in part])
                for part in _conjuncts(rule)
            ]
        )
    except TooAlike:
        raise CheckProblem(
            Diagnostic(
                "C014",
                "the variables of this body are too much alike to be told apart",
                "split the rule, with a predicate for each part",
                rule.span,
            )
        ) from None


def _conjuncts(rule: Rule) -> list[_Flat]:
    outer = [c for c in rule.body if not isinstance(c, Aggregate)]
    parts = [("head", *_flat(rule.head)), *(("body", *_flat(c)) for c in outer)]
    aggregate = rule.aggregate
    if aggregate:
        # Only groups and targets are seen from outside: the other inner names are apart.
        shared = {*aggregate.groups, *(fold.target for fold in aggregate.folds)}
        inner = {v for c in aggregate.body for v in variables(c)}
        inner |= {fold.argument for fold in aggregate.folds}
        apart = {v: Variable(f"inner {v.name}") for v in inner - shared}
        parts += [
            ("inner", *(apart.get(i, i) if isinstance(i, Variable) else i for i in _flat(c)))
            for c in aggregate.body
        ]
        parts += [("on", v) for v in aggregate.groups]
        parts += [
            (
                f"with {fold.op} {fold.distinct} {fold.registered}",
                apart.get(fold.argument, fold.argument),
                fold.target,
            )
            for fold in aggregate.folds
        ]
    return list(dict.fromkeys(parts))


def _flat(node: Conjunct | Expression) -> _Flat:
    match node:
        case Variable():
            return (node,)
        case Atom(relation=relation, args=args):
            return (f"atom {relation!r} {len(args)}", *(i for a in args for i in _flat(a)))
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
