"""All findings about program texts: those of the parser, the checks, the lints and the graph."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.kb.rule_base import CheckedRules
from zodiacedge.kb.warnings import endless_values, mistaken_constants, names_without_facts
from zodiacedge.language.canonical import keyed
from zodiacedge.language.checks import Host, Subject, check_each, check_together
from zodiacedge.language.lint.lints import lint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Predicate, Program, Rule
    from zodiacedge.terms import Term


class LoadedFacts(NamedTuple):
    """What the findings need of the data of a program: the predicates, and whether a fact has a term."""

    predicates: Collection[Predicate]
    holds: Callable[[Term], bool]


class Diagnosis(NamedTuple):
    """Findings about a program, not in the order of the text, and its rules without an error."""

    findings: list[Diagnostic]
    rules: CheckedRules


def diagnose(program: Program, parsed: Iterable[Diagnostic], data: LoadedFacts | None = None) -> Diagnosis:
    """Return all findings about a program.

    Args:
        program: The statements that parse.
        parsed: The findings about those that do not.
        data: The facts that the program will run on, if they are known.
    """
    rules = program.rules
    key_of = cache(keyed)
    of_each = check_each(rules, Host())
    subject = Subject(rules, program.facts, data.predicates if data else (), keyed=key_of)
    findings = [*parsed, *of_each, *check_together(subject)]
    sound = tuple(_sound(rules, findings))
    lints = list(lint(sound))
    findings += lints
    if data:
        findings += mistaken_constants((conjunct for rule in rules for conjunct in rule.body), data.holds)
    predicates = {atom.predicate for atom in program.facts}.union(data.predicates if data else ())
    terms = {term for atom in program.facts for term in atom.args}
    findings += names_without_facts(
        sound,
        {rule.head.predicate.name for rule in rules},
        predicates.__contains__,
        lambda term: term in terms or (data is not None and data.holds(term)),
    )
    forms = {rule: key_of(rule) for rule in sound}
    resolved = dict(forms.values())
    graph = HyperGraph()
    try:
        graph = HyperGraph.build(resolved)
        findings += endless_values(resolved, graph)
    except StratificationProblem as problem:
        findings += problem.diagnostics
    return Diagnosis(findings, CheckedRules(forms, (*of_each, *lints), graph))


def _sound(rules: Iterable[Rule], findings: Iterable[Diagnostic]) -> Iterator[Rule]:
    """Yield the rules without an error: a cycle among them remains after the corrections."""
    errors = [d.span for d in findings if d.span and d.severity == "error"]
    if not errors:
        yield from rules
        return
    positions: dict[str, list[int]] = {}
    for span in errors:
        positions.setdefault(span.source.name, []).append(span.start)
    for starts in positions.values():
        starts.sort()
    for rule in rules:
        if rule.span:
            starts = positions.get(rule.span.source.name, [])
            if bisect_left(starts, rule.span.start) == bisect_left(starts, rule.span.end):
                yield rule
