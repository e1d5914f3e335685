"""From a text or a random program to a materialisation, the way every caller does it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Settings
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.graph.hyper_graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import ground, parse_program, parse_query
from zodiacedge.language.printer import format_atom, format_term
from zodiacedge.language.safety import resolve, resolve_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strategies.programs import RandomProgram
    from zodiacedge.engine.api import Dropped, Engine, Materialisation
    from zodiacedge.language.ast import Fact, Rule


@lru_cache(maxsize=65536)
def _keyed_rule(rule: Rule) -> tuple[str, Rule]:
    made = resolve(rule)
    return rule_key(made), made


def keyed(rules: Iterable[Rule]) -> dict[str, Rule]:
    """Return resolved rules by key."""
    return dict(map(_keyed_rule, rules))


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A materialisation, with what it was made from."""

    rules: Mapping[str, Rule]
    graph: HyperGraph
    explicit: frozenset[Fact]
    result: Materialisation
    settings: Settings

    def facts(self, name: str | None = None) -> list[str]:
        """The visible facts of a predicate, or what the rules added to the explicit facts, as text."""
        visible = self.result.visible()
        chosen = visible - self.explicit if name is None else {f for f in visible if f.predicate.name == name}
        return sorted(map(format_atom, chosen))

    def dropped(self, label: str = "") -> Dropped | None:
        """What the rule of a label dropped; without a label, what the first rule that dropped did."""
        for key, found in self.result.dropped.items():
            if not label or self.rules[key].label == label:
                return found
        return None

    def answer(self, query: str) -> list[str]:
        """The rows of a query, as text."""
        found = self.result.answer(resolve_query(parse_query(query)), self.settings)
        return [", ".join(map(format_term, row)) for row in found.rows]


def evaluate(
    rules: Iterable[Rule],
    facts: Iterable[Fact],
    settings: Settings | None = None,
    engine: Engine | None = None,
) -> Evaluated:
    """Evaluate rules that passed the checks over explicit facts."""
    chosen = settings or Settings()
    by_key = keyed(rules)
    graph = HyperGraph.build(by_key)
    explicit = frozenset(facts)
    result = (engine or ReferenceEngine()).materialise(by_key, graph, explicit, chosen)
    return Evaluated(by_key, graph, explicit, result, chosen)


def evaluate_text(text: str, settings: Settings | None = None, engine: Engine | None = None) -> Evaluated:
    """Check and evaluate a program given as text."""
    program = parse_program(text)
    problems = [d for d in check(Subject(program.rules, program.facts)) if d.severity == "error"]
    assert not problems, "\n".join(d.render() for d in problems)
    return evaluate(program.rules, map(ground, program.facts), settings, engine)


def evaluate_program(
    program: RandomProgram, settings: Settings | None = None, engine: Engine | None = None
) -> Evaluated:
    """Evaluate a random program."""
    return evaluate(program.rules, program.facts, settings, engine)
