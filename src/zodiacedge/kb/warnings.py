"""Warnings that need the facts or the graph.

They are about unknown predicates, unread relations, strings taken for IRIs, and values computed in recursion.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, nearest
from zodiacedge.language.ast import (
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Predicate,
    Variable,
    body_atoms,
    conjuncts,
    operands,
    variables,
)
from zodiacedge.language.lint.lints import LOWER_CASE_NAME, computed_with, constant_finding, is_written_as_iri
from zodiacedge.language.lint.namesakes import Namesakes, namesake_finding
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.printer import format_argument, format_predicate, format_rule, quote
from zodiacedge.language.unify import pattern_of
from zodiacedge.terms import IRI, RDF_TYPE, XSD_STRING, Literal
from zodiacedge.util.spelling import Spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import State
    from zodiacedge.errors import Span
    from zodiacedge.graph import HyperGraph
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.ast import Conjunct, Expression, Fact, Rule
    from zodiacedge.terms import Term

_MOST_NAMES = 500
_MOST_UNREAD = 5
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ]|$)")
_ALL_CLASSES = Predicate(RDF_TYPE, 2)
# Functions that make longer texts or larger numbers of their own results.
_GROWING = frozenset({"concat", "replace", "exp"})


def mistaken_constants(body: Iterable[Conjunct], holds: Callable[[Term], bool]) -> Iterator[Diagnostic]:
    """Warn of a constant that occurs in explicit facts as a string but not as an IRI.

    `wt1` is an IRI in a rule and a string in a CSV cell.
    """
    spans: dict[str, Span | None] = {}
    for conjunct in conjuncts(body):
        for operand in operands(conjunct):
            if isinstance(operand, IRI):
                spans.setdefault(operand.value, conjunct.span)
    for value, span in spans.items():
        if holds(Literal(value)) and not holds(IRI(value)):
            yield Diagnostic(
                "W005",
                f"no fact holds the IRI <{value}>, but some hold the string {quote(value)}",
                f"a bare name is an IRI in a rule and a string in a table cell: write {quote(value)} for "
                f"the string, or <{value}> in the table",
                span,
                "warning",
            )


def names_without_facts(
    rules: Iterable[Rule],
    defined: Collection[str],
    has_facts: Callable[[Predicate], bool],
    holds: Callable[[Term], bool],
) -> Iterator[Diagnostic]:
    """Warn of names that look like variables and that no fact has: `likes(person, X) :- knows(person, X) .`.

    The name is in several places of the rule, one of them an atom whose facts are all explicit: the rule
    derives nothing. Where a fact has the string, `mistaken_constants` says so; where the name is computed
    with, a lint does.

    Args:
        rules: The rules that a change adds.
        defined: The names of predicates that rules derive.
        has_facts: Whether there are explicit facts of a predicate.
        holds: Whether an explicit fact has a term.
    """
    for rule in rules:
        atoms = [c for c in rule.body if isinstance(c, Atom)]
        places = Counter(
            o.value for c in (rule.head, *conjuncts(rule.body)) for o in operands(c) if isinstance(o, IRI)
        )
        for name, count in places.items():
            needed = next((a for a in atoms if IRI(name) in a.args and a.predicate.name not in defined), None)
            if (
                count > 1
                and LOWER_CASE_NAME.fullmatch(name)
                and needed
                and IRI(name) not in computed_with(rule)
                and not is_written_as_iri(rule, name)
                and not holds(IRI(name))
                and not holds(Literal(name))
                and has_facts(needed.predicate)
            ):
                yield constant_finding(rule, name, f"{count} places of this rule, and no fact has it")


def unknown_predicates(
    atoms: Iterable[Atom], facts: Collection[Predicate], rules: Collection[Rule]
) -> Iterator[Diagnostic]:
    """Warn of predicates of a query that nothing defines, if no rule reads them or a namesake is defined.

    Args:
        atoms: The atoms of the query.
        facts: The predicates of visible facts.
        rules: The rules in force.
    """
    defined = {rule.head.predicate for rule in rules}.union(facts)
    read = {atom.predicate for rule in rules for atom in body_atoms(rule.body)}
    names = {p.name for p in defined}
    known = names.union(p.name for p in read)
    for atom in atoms:
        name, arity = atom.predicate
        if atom.predicate in defined or name == RDF_TYPE:
            continue
        namesakes = Namesakes(names).find(name) if name not in names else []
        # A rule that derives all classes may derive this one later, if anything is to read it.
        later = arity == 1 and _ALL_CLASSES in defined and atom.predicate in read
        if namesakes and not later:
            yield namesake_finding(atom, namesakes)
            continue
        if atom.predicate in read:
            continue
        arities = sorted(p.arity for p in {*defined, *read} if p.name == name)
        near = Spelling(known).nearest(name) or _most_alike(name, known)
        hint = "no rule and no fact uses it"
        if arities:
            hint = (
                f"it is known with {' and '.join(map(str, arities))} argument{'s' if arities != [1] else ''}"
            )
        elif near:
            hint = f"did you mean {format_predicate(near)}?"
        yield Diagnostic(
            "W004",
            f"unknown predicate {format_predicate(name)} with {arity} argument{'' if arity == 1 else 's'}",
            hint,
            atom.span,
            "warning",
        )


def _most_alike(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like a name; of IRIs, among those of its namespace."""
    end = max(name.rfind("#"), name.rfind("/")) + 1
    local = {other[end:] for other in known if other.startswith(name[:end])}
    near = nearest(name[end:], sorted(local)[:_MOST_NAMES], 0.6)
    return near and name[:end] + near


def namesakes_of_rules(
    program: RuleBase, inserted: Collection[Predicate], state: State, checked: Collection[str]
) -> Iterator[Diagnostic]:
    """Warn of predicates that rules in force read and nothing defines, where facts of a namesake arrive.

    Args:
        program: The rules after the change.
        inserted: The predicates of the facts to insert that had no facts before.
        state: The version that the change starts from.
        checked: The keys of the rules that the change adds.
    """
    names = {predicate.name for predicate in inserted}
    arriving = Namesakes(names - program.mentions.keys())
    for name in sorted(program.mentions.keys() - program.defined.keys() - names) if names else ():
        found = arriving.find(name)
        keys = [key for key in program.mentions[name] if key not in checked] if found else []
        if not keys or state.explicit_predicates({name}):
            continue
        rules = sorted((program.rules[key] for key in keys), key=format_rule)
        atom = next(a for a in body_atoms(rules[0].body) if a.predicate.name == name)
        if name != RDF_TYPE and not (atom.predicate.arity == 1 and RDF_TYPE in program.defined):
            yield from audible([namesake_finding(atom, found)], rules[:1])


def texts_as_times(
    arrived: Iterable[Predicate],
    times: Mapping[str, int],
    matching: Callable[[Atom, int], Iterable[Fact]],
) -> Iterator[Diagnostic]:
    """Warn of predicates whose first fact has a text where its time is: it reads as a moment, and is none.

    Args:
        arrived: The predicates that had no facts before.
        times: The argument that is the time of each predicate.
        matching: Returns the instances of an atom among the facts, at most so many.
    """
    for name, arity in sorted(arrived):
        position = times.get(name, 0)
        if not 1 <= position <= arity:
            continue
        atom = Atom(name, tuple(Variable(f"V{n}") for n in range(arity)))
        for fact in matching(atom, 1):
            term = fact.args[position - 1]
            if isinstance(term, Literal) and term.datatype == XSD_STRING and _MOMENT.match(term.lexical):
                yield Diagnostic(
                    "W032",
                    f"{format_predicate(name)}/{arity} has the text {quote(term.lexical)} where its time is, "
                    "and a text is in no window",
                    'a moment is "2026-01-01T12:00:00Z"^^xsd:dateTime; docs/formats.md has it in tables',
                    severity="warning",
                )


def unread_relations(
    loaded: Iterable[Predicate],
    atoms: Iterable[Atom],
    prefixes: Mapping[str, str],
    readers: str = "no rule and no query",
) -> Iterator[Diagnostic]:
    """Hint at relations that were loaded and that no atom of these readers reads, all in one diagnostic."""
    read = {atom.predicate for atom in atoms}
    unread = sorted(
        predicate
        for predicate in set(loaded) - read - {_ALL_CLASSES}
        if predicate.arity != 1 or _ALL_CLASSES not in read
    )
    if not unread:
        return
    shown = ", ".join(f"{format_predicate(name, prefixes)}/{arity}" for name, arity in unread[:_MOST_UNREAD])
    more = f" and {len(unread) - _MOST_UNREAD:,} more" if len(unread) > _MOST_UNREAD else ""
    hint = "check the name of the file, or give the relation's name: relation=FILE"
    for name, arity in unread[:_MOST_UNREAD]:
        arities = sorted(predicate.arity for predicate in read if predicate.name == name)
        names = {predicate.name for predicate in read}
        near = nearest(name, sorted(names)[:_MOST_NAMES]) or next(iter(Namesakes(names).find(name)), None)
        if arities:
            wanted = " and ".join(map(str, arities))
            hint = (
                f"{format_predicate(name, prefixes)} is read with {wanted} arguments, and loaded with {arity}"
            )
            break
        if near:
            hint = f"did you mean {format_predicate(near, prefixes)}?"
            break
    yield Diagnostic(
        "W018",
        f"loaded, and read by {readers}: {shown}{more}",
        hint,
        severity="hint",
    )


def endless_values(rules: Mapping[str, Rule], graph: HyperGraph) -> Iterator[Diagnostic]:
    """Warn of rules that compute values from values of their own hyper-node, without a bound.

    A comparison in the rule, or an atom that reads facts of another node, bounds a value. Rules are resolved.
    """
    for key, rule in rules.items():
        bindings = [c for c in rule.body if isinstance(c, Binding)]
        growing = [b for b in bindings if any(map(_grows, operands(b)))]
        if not growing or not graph.recursive(graph.homes[key]):
            continue
        recursive = _computed(_read_in_recursion(rule, graph, graph.homes[key]), bindings)
        comparisons = [c for c in rule.body if isinstance(c, Comparison) and c.operator != "!="]
        if any(v in recursive for comparison in comparisons for v in variables(comparison)):
            continue
        for binding in growing:
            derived = _computed({binding.variable}, bindings)
            if not recursive.isdisjoint(variables(binding.expression)) and not derived.isdisjoint(
                rule.head.args
            ):
                name = format_argument(binding.variable)
                yield Diagnostic(
                    "W025",
                    f"{name} is computed in recursion, which may never end",
                    f"bound it with a comparison in the body, such as {name} < 100, or the evaluation with "
                    "--max-seconds (limits= in Python); where the data bound it, silence this: "
                    "# lint: ignore W025",
                    binding.span,
                    "warning",
                )
                break


def _grows(operand: Expression) -> bool:
    """Whether an expression may have values without end if its result is an operand again."""
    if isinstance(operand, Call):
        return operand.registered or operand.function in _GROWING
    return isinstance(operand, Binary) and operand.operator != "%"


def _read_in_recursion(rule: Rule, graph: HyperGraph, node: int) -> set[Variable]:
    """Return the variables that only positive atoms which read facts of their own node bind."""
    inside: set[Variable] = set()
    outside: set[Variable] = set()
    for atom in rule.body:
        if isinstance(atom, Atom):
            writers = graph.rules.deriving(pattern_of(atom))
            recursive = any(graph.homes[writer] == node for writer in writers)
            (inside if recursive else outside).update(variables(atom))
    return inside - outside


def _computed(given: set[Variable], bindings: Sequence[Binding]) -> set[Variable]:
    """Return variables with those that bindings compute from them."""
    computed = set(given)
    for _ in bindings:
        computed |= {b.variable for b in bindings if not computed.isdisjoint(variables(b.expression))}
    return computed
