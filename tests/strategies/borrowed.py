"""Tests of other modules, borrowed: run on one more engine, or listened to for the programs they evaluate.

Where a test by itself would cost a Spark job or more, the programs of hundreds of tests are put together.
Each has names of its own there, and those with the same rules are one, with a column more that tells whose
facts they are. The result is compared with the definition's, which those tests compare with what they expect.
"""

from __future__ import annotations

import inspect
import itertools
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast
from unittest import mock

from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.change import Change
from zodiacedge.language.ast import Aggregate, Atom, Fact, Negation, Rule, Variable, body_atoms
from zodiacedge.language.checks import Subject, check
from zodiacedge.terms import IRI, RDF_TYPE, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from zodiacedge.engine.api import Engine, Settings, State
    from zodiacedge.graph.hyper_graph import HyperGraph
    from zodiacedge.language.ast import Conjunct

    Test = Callable[..., None]
    OnEngine = Callable[[Engine], None]
    # The keys of a program's rules, and its facts.
    _Identity = tuple[frozenset[str], tuple[Fact, ...]]

_Atom = TypeVar("_Atom", Atom, Fact)
# The column that tells cases apart. Where a body has no atom, a relation of its own binds it.
_CASE = Variable("Case")


def cases(module: ModuleType) -> dict[str, OnEngine]:
    """Return the tests of a module that need nothing but an engine, with each of their parameters, by name.

    What hypothesis draws is left out.
    """
    found: dict[str, OnEngine] = {}
    for name, test in vars(module).items():
        if not name.startswith("test_") or hasattr(test, "hypothesis"):
            continue
        wanted = set(inspect.signature(test).parameters)
        for number, given in enumerate(_parameters(test)):
            if wanted - set(given) <= {"engine"}:
                found[f"{name}-{number}"] = partial(_called, test, given)
    return found


def _called(test: Test, given: Mapping[str, object], engine: Engine) -> None:
    if "engine" in inspect.signature(test).parameters:
        test(**given, engine=engine)
    else:
        test(**given)


def _parameters(test: Test) -> Iterator[dict[str, object]]:
    tables = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize" and mark.args[0] != "engine":
            names, rows = mark.args[0], mark.args[1]
            split = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
            tables.append([dict(zip(split, _values(row, len(split)), strict=True)) for row in rows])
    for rows in itertools.product(*tables):
        yield {name: value for row in rows for name, value in row.items()}


def _values(row: object, count: int) -> Sequence[object]:
    if hasattr(row, "marks"):
        # It was written as `pytest.param`.
        return cast("Sequence[object]", getattr(row, "values", ()))
    return cast("Sequence[object]", row) if count > 1 else (row,)


@dataclass(frozen=True)
class Small:
    """A program that a test evaluates."""

    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]

    @property
    def by_itself(self) -> bool:
        """Whether it looks at all classes there are, and so cannot stand beside others."""
        atoms = [
            *(rule.head for rule in self.rules),
            *body_atoms(c for rule in self.rules for c in rule.body),
        ]
        return any(atom.relation == RDF_TYPE and not isinstance(atom.args[1], IRI) for atom in atoms)


def programs(*modules: ModuleType) -> list[Small]:
    """Run the tests of modules on the definition, and return the programs they evaluate there."""
    found: dict[_Identity, Small] = {}
    with _listening(found):
        for module in modules:
            for case in cases(module).values():
                case(ReferenceEngine())
    return list(found.values())


@contextmanager
def _listening(found: dict[_Identity, Small]) -> Iterator[None]:
    plain = ReferenceEngine.materialise

    def materialise(
        self: ReferenceEngine,
        rules: Mapping[str, Rule],
        graph: HyperGraph,
        facts: Iterable[Fact],
        settings: Settings,
    ) -> State:
        given = tuple(sorted(facts, key=repr))
        result = plain(self, rules, graph, given, settings)
        if not settings.strict and _is_accepted(rules.values()):
            # Where bodies differ in their order alone, one of them will do.
            found.setdefault((frozenset(rules), given), Small(tuple(rules.values()), given))
        return result

    with mock.patch.object(ReferenceEngine, "materialise", materialise):
        yield


def _is_accepted(rules: Iterable[Rule]) -> bool:
    """Whether a knowledge base takes the rules: a test of an engine may evaluate what the checks refuse."""
    return all(finding.severity != "error" for finding in check(Subject(tuple(rules))))


def together(given: Iterable[Small]) -> list[Small]:
    """Return programs that can stand beside each other, one for all with the same rules; large ones first."""
    members: dict[tuple[Rule, ...], list[Small]] = {}
    for one in given:
        members.setdefault(tuple(sorted(one.rules, key=repr)), []).append(one)
    ordered = sorted(members.items(), key=lambda item: -len(item[1]))
    return [_one(name, rules, same) for name, (rules, same) in enumerate(ordered)]


def _one(name: int, rules: tuple[Rule, ...], same: list[Small]) -> Small:
    made = tuple(_rule(rule, name) for rule in rules)
    facts = [_fact(fact, name, case) for case, one in enumerate(same) for fact in one.facts]
    if any(atom.relation == _guard(name) for atom in body_atoms(c for rule in made for c in rule.body)):
        facts += [Fact(_guard(name), (integer(case), integer(case))) for case in range(len(same))]
    return Small(made, tuple(facts))


def _rule(rule: Rule, name: int) -> Rule:
    return Rule(_widened(rule.head, name), _body(rule.body, name))


def _body(body: tuple[Conjunct, ...], name: int) -> tuple[Conjunct, ...]:
    found = tuple(_conjunct(one, name) for one in body)
    if any(isinstance(one, Atom | Aggregate) for one in found):
        return found
    return (Atom(_guard(name), (_CASE, _CASE)), *found)


def _guard(name: int) -> str:
    return f"case_{name}"


def _conjunct(conjunct: Conjunct, name: int) -> Conjunct:
    match conjunct:
        case Atom():
            return _widened(conjunct, name)
        case Negation(atom=atom):
            return Negation(_widened(atom, name))
        case Aggregate(body=body, groups=groups):
            return replace(conjunct, body=_body(body, name), groups=(_CASE, *groups))
        case _:
            return conjunct


def _widened(atom: Atom, name: int) -> Atom:
    """Return an atom with a column more; what was a class is a relation."""
    args = atom.args[:1] if atom.relation == RDF_TYPE else atom.args
    return Atom(f"{atom.predicate.name}_{name}_{len(args)}", (_CASE, *args))


def _fact(fact: Fact, name: int, case: int) -> Fact:
    args = fact.args[:1] if fact.relation == RDF_TYPE else fact.args
    return Fact(f"{fact.predicate.name}_{name}_{len(args)}", (integer(case), *args))


def in_and_out(given: Collection[Small]) -> tuple[Change, ...]:
    """Return changes: programs come with half of their facts, have the other half instead, then all."""
    rules = tuple(rule for one in given for rule in one.rules)
    facts = [tuple(fact for one in given for fact in one.facts[start::2]) for start in (0, 1)]
    return (
        Change(add_rules=rules, add_facts=facts[0]),
        Change(add_facts=facts[1], remove_facts=facts[0]),
        Change(add_facts=facts[0]),
    )


def at_once(sessions: Iterable[Iterable[Change]]) -> list[Change]:
    """Return one session of several without aggregates: each has its own names, and steps go together."""
    named = [[_renamed_change(one, name) for one in session] for name, session in enumerate(sessions)]
    return [
        Change(
            tuple(rule for one in step for rule in one.add_rules),
            tuple(rule for one in step for rule in one.remove_rules),
            tuple(fact for one in step for fact in one.add_facts),
            tuple(fact for one in step for fact in one.remove_facts),
        )
        for step in itertools.zip_longest(*named, fillvalue=Change())
    ]


def _renamed_change(change: Change, name: int) -> Change:
    labels = [rule for rule in change.remove_rules if isinstance(rule, str)]
    assert len(labels) == len(change.remove_rules)
    return Change(
        tuple(_renamed_rule(rule, name) for rule in change.add_rules),
        tuple(f"{label}_{name}" for label in labels),
        tuple(_renamed(fact, name) for fact in change.add_facts),
        tuple(_renamed(fact, name) for fact in change.remove_facts),
    )


def _renamed_rule(rule: Rule, name: int) -> Rule:
    body: list[Conjunct] = []
    for one in rule.body:
        if isinstance(one, Negation):
            body.append(Negation(_renamed(one.atom, name)))
        else:
            body.append(_renamed(one, name) if isinstance(one, Atom) else one)
    return Rule(_renamed(rule.head, name), tuple(body), f"{rule.label}_{name}")


def _renamed(atom: _Atom, name: int) -> _Atom:
    if atom.relation != RDF_TYPE:
        return replace(atom, relation=f"{atom.relation}_{name}")
    subject, of = atom.args
    assert isinstance(of, IRI)
    return replace(atom, args=(subject, IRI(f"{of.value}_{name}")))
