"""Verification: what is kept, against the same program evaluated from nothing.

The visible facts and the segment of every hyper-node are compared predicate by predicate, by the engine whose
state it is. The digest is the sum of the SHA-256 hashes of all visible facts as text: it depends neither on
their order nor on the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.language.printer import format_atom, format_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.engine.api import Engine, Settings, State
    from zodiacedge.engine.yield_point import YieldPoint
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.ast import Fact, Predicate

_DIGEST_BITS = 256
_MOST = 6


@dataclass(frozen=True, slots=True)
class Difference:
    """Where what is kept is not what it should be: in the visible facts, or in a node's segment."""

    where: str
    predicate: Predicate
    missing: int
    """Facts that should be there."""
    extra: int
    """Facts that should not."""
    example: Fact

    def __str__(self) -> str:
        """Return the difference as one line."""
        name, arity = self.predicate
        return (
            f"{self.where}: {name}/{arity} has {counted(self.missing, 'fact')} too few and "
            f"{self.extra:,} too many, for example {format_atom(self.example)}"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found."""

    version: int
    engine: str
    """The engine that evaluated the program from nothing."""
    facts: int
    digest: str
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is as it should be."""
        return not self.differences

    def __str__(self) -> str:
        """Return what was found as a few lines."""
        outcome = "as it should be" if self.ok else counted(len(self.differences), "difference")
        lines = [
            f"version {self.version} against the engine {self.engine}: {outcome}",
            f"visible facts: {self.facts:,}",
            f"digest: {self.digest}",
            *map(str, self.differences[:_MOST]),
        ]
        if len(self.differences) > _MOST:
            lines.append(f"and {len(self.differences) - _MOST:,} more")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return what was found as plain values for JSON."""
        return {
            "ok": self.ok,
            "version": self.version,
            "engine": self.engine,
            "facts": self.facts,
            "digest": self.digest,
            "differences": [
                {
                    "where": one.where,
                    "predicate": f"{one.predicate.name}/{one.predicate.arity}",
                    "missing": one.missing,
                    "extra": one.extra,
                    "example": format_atom(one.example),
                }
                for one in self.differences
            ],
        }


def verified(
    version: int, state: State, program: RuleBase, engine: Engine, settings: Settings
) -> Verification:
    """Evaluate a program anew over the explicit facts of a state, and compare that with the state."""
    fresh = engine.recompute(program.rules, program.graph, state, settings)
    count, digest = state.digest(settings.turn)
    found = tuple(_differences(state, fresh, program, settings.turn))
    return Verification(version, engine.name, count, f"{digest:0{_DIGEST_BITS // 4}x}", found)


def _differences(kept: State, fresh: State, program: RuleBase, turn: YieldPoint) -> Iterator[Difference]:
    """Yield where a state is not what it should be: first what is visible, then node by node."""
    nodes = [frozenset(node.rules) for node in program.graph.order]
    order = {node: number for number, node in enumerate((None, *nodes))}
    for one in sorted(kept.mismatches(fresh, nodes, turn), key=lambda one: (order[one.node], one.predicate)):
        where = "visible facts" if one.node is None else f"segment of {_names(program, one.node)}"
        yield Difference(where, one.predicate, one.missing, one.extra, one.example)


def _names(program: RuleBase, node: frozenset[str]) -> str:
    rules = [program.rules[key] for key in sorted(node)]
    return ", ".join(rule.label or format_rule(rule) for rule in rules)
