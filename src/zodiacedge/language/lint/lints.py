"""Lints: warnings about a rule that is sound, and probably not what its author meant.

Each lint of `RULE_LINTS` takes a rule without errors. Warnings that need other rules are left to `checks`,
those that need facts or the graph to `kb.warnings`, and the comments that silence a warning to `silence`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Span, nearest
from zodiacedge.language.ast import (
    Binary,
    Call,
    Comparison,
    Negation,
    Rule,
    Variable,
    body_atoms,
    conjuncts,
    operands,
    variables,
)
from zodiacedge.language.mistakes import AGGREGATE_FORM
from zodiacedge.language.printer import format_argument, format_predicate
from zodiacedge.language.vocabulary import AGGREGATES
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from zodiacedge.language.ast import Argument, Conjunct, Expression

# As a constant of a rule it looks like a variable.
_LETTER = re.compile(r"[a-z]")
_LOWER = re.compile(r"[a-z]\w*")
LOWER_CASE_NAME = re.compile(r"[a-z]{2,}")
"""A name that looks like a variable if no fact has it; `wt1` does not."""
# As a variable it looks like the name of a class.
_CAPITALISED = re.compile(r"[^\W\d_]+[a-z]\w*")


def lint(rules: Iterable[Rule]) -> list[Diagnostic]:
    """Return the warnings about rules without errors, rule by rule."""
    return [d for rule in rules for run in RULE_LINTS for d in run(rule)]


def lone_variables(rule: Rule) -> Iterator[Diagnostic]:
    """Warn of variables that occur once, where another value or another variable may be meant.

    Under `not` such a variable is existential, and inside an aggregate it counts for the fold. A name that
    starts with `_` says that it is not used.
    """
    uses = _uses(rule)
    lone = [v for v, count in uses.items() if count == 1 and v.name[0] != "_"]
    if lone:
        negated = {v for c in rule.body if isinstance(c, Negation) for v in variables(c)}
        inside = {v for c in rule.aggregate.body for v in variables(c)} if rule.aggregate else set()
        silent = negated.union(inside, _classes(rule), _namesakes(rule))
        lone = [v for v in lone if v not in silent]
    if not lone:
        return
    names = ", ".join(map(format_argument, lone))
    # Every letter is near every other one.
    others = [v.name for v in uses if v != lone[0] and len(v.name) > 1] if len(lone) == 1 else []
    near = nearest(lone[0].name, others) if others else None
    note = f"where any value will do write `_`, or _{lone[0].name}"
    if near:
        note = f"did you mean {format_argument(Variable(near))}? {note}"
    verb = "occurs" if len(lone) == 1 else "occur"
    yield _warning("W020", f"{names} {verb} once in this rule", note, _at(rule, lone[0]))


def _uses(rule: Rule) -> Counter[Variable]:
    """Count the occurrences of each variable outside the aggregate; a group is used inside, too."""
    aggregate = rule.aggregate
    used = list(variables(rule.head))
    for conjunct in rule.body:
        if conjunct is not aggregate:
            used += variables(conjunct)
    if aggregate:
        used += (*aggregate.columns, *aggregate.groups)
    return Counter(used)


def aggregates_of_one_value(rule: Rule) -> Iterator[Diagnostic]:
    """Warn of `MAX(X)` as a function: it is X, not the greatest of a group."""
    for call in (o for c in conjuncts(rule.body) for o in operands(c) if isinstance(o, Call)):
        name = call.function.upper()
        if name in AGGREGATES and len(call.args) == 1 and not call.registered:
            note = f"as a function it takes several values; {AGGREGATE_FORM}"
            yield _warning("W021", f"{name} of one value is that value", note, call.span)


def variables_like_names(rule: Rule) -> Iterator[Diagnostic]:
    """Warn of variables that look like classes or predicates: `rdf:type(X, Turbine)`, `P(X) :- q(X, P)`."""
    for v in _classes(rule):
        yield _warning(
            "W023",
            f"{format_argument(v)} is a variable: it ranges over all classes",
            f"the class is <{v.name}>; as a variable write `_`, or ?{v.name}",
            _at(rule, v),
        )
    for v in _namesakes(rule):
        yield _warning(
            "W023",
            f"{format_predicate(v.name)} is a variable and a predicate in this rule",
            f"a predicate is a name, never a variable; rename one, or write <{v.name}> for the constant",
            _at(rule, v),
        )


def _classes(rule: Rule) -> dict[Variable, None]:
    """Return the variables that stand for a class, occur nowhere else and look like its name."""
    atoms = [a for a in body_atoms(rule.body) if a.relation == RDF_TYPE and len(a.args) == 2]
    classes = [a.args[1] for a in atoms if isinstance(a.args[1], Variable)]
    if not classes:
        return {}
    count = Counter(v for c in (rule.head, *rule.body) for v in variables(c))
    return dict.fromkeys(
        v
        for v in classes
        if count[v] == 1
        and v.name[0].isupper()
        and _CAPITALISED.fullmatch(v.name)
        and not _written(rule, f"?{v.name}")
    )


def _namesakes(rule: Rule) -> dict[Variable, None]:
    """Return the variables with the name of a predicate of the rule, unless they are written with `?`."""
    predicates = {atom.predicate.name for atom in (rule.head, *body_atoms(rule.body))}
    return dict.fromkeys(
        v
        for c in (rule.head, *rule.body)
        for v in variables(c)
        if v.name in predicates and v.name[0].isupper() and not _written(rule, f"?{v.name}")
    )


def names_like_variables(rule: Rule) -> Iterator[Diagnostic]:
    """Warn of names in several places of a rule that look like variables: `p(x) :- q(x, Y) .`.

    A single lower-case letter does; so does a longer name that is computed with, or compared by order.
    """
    places = Counter(
        term for c in (rule.head, *conjuncts(rule.body)) for term in operands(c) if isinstance(term, IRI)
    )
    computed = computed_with(rule)
    for term, count in places.items():
        looks = _LETTER.fullmatch(term.value) or (term in computed and _LOWER.fullmatch(term.value))
        if count > 1 and looks and not is_written_as_iri(rule, term.value):
            yield constant_finding(rule, term.value, f"{count} places of this rule")


def constant_finding(rule: Rule, name: str, places: str) -> Diagnostic:
    """Return the warning that a name is a constant where a variable may be meant."""
    return _warning(
        "W024",
        f"{name} is a constant, in {places}",
        f"a variable is {name[0].upper()}{name[1:]} or ?{name}; for the constant write <{name}>",
        _at(rule, Variable(name)),
    )


def is_written_as_iri(rule: Rule, name: str) -> bool:
    """Return whether a rule has a name in angle brackets."""
    return _written(rule, f"<{name}>")


def computed_with(rule: Rule) -> set[Argument | Expression]:
    """Return the terms of a rule that are computed with, or compared by order."""
    return {term for c in conjuncts(rule.body) for term in _computed(c)}


def _computed(conjunct: Conjunct) -> Iterator[Argument | Expression]:
    """Yield the operands of arithmetic and of comparisons by order, where a constant IRI makes no sense."""
    if isinstance(conjunct, Comparison) and conjunct.operator not in {"=", "!="}:
        yield from (conjunct.left, conjunct.right)
    for operand in operands(conjunct):
        if isinstance(operand, Binary):
            yield from (operand.left, operand.right)


def _written(rule: Rule, text: str) -> bool:
    return rule.span is not None and text in rule.span.text


def _at(rule: Rule, variable: Variable) -> Span | None:
    """Return the first occurrence of a variable in the text of a rule."""
    span = rule.span
    found = span and re.search(rf"(?<![\w?:<])\??{re.escape(variable.name)}(?![\w(:])", span.text)
    return Span(span.source, span.start + found.start(), span.start + found.end()) if span and found else span


def _warning(code: str, message: str, note: str, span: Span | None) -> Diagnostic:
    return Diagnostic(code, message, note, span, "warning")


RULE_LINTS: tuple[Callable[[Rule], Iterator[Diagnostic]], ...] = (
    lone_variables,
    aggregates_of_one_value,
    variables_like_names,
    names_like_variables,
)
