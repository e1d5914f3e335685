"""Compares the materialisation with an evaluation of the same program from scratch.

The engine of the state compares the visible facts and the segment of every hyper-node predicate by predicate.
The digest is the sum of the SHA-256 hashes of all visible facts as text: it depends neither on
their order nor on the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.language.printer import format_atom, format_rule
from zodiacedge.language.windows import by_clock

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
    """A predicate whose facts differ from those expected, in the visible facts or in a node's segment."""

    where: str
    predicate: Predicate
    missing: int
    """The number of expected facts that are absent."""
    extra: int
    """The number of facts that are not expected."""
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
    """The result of a verification."""

    version: int
    engine: str
    """The engine that evaluated the program from scratch."""
    facts: int
    digest: str
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no differences."""
        return not self.differences

    def __str__(self) -> str:
        """Return the result as a few lines for people."""
        outcome = "no differences" if self.ok else counted(len(self.differences), "difference")
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
        """Return the result as plain values for JSON."""
        return {
            "ok": self.ok,
            "version": self.version,
            "engine": self.engine,
            "facts": self.facts,
            "digest": self.digest,
            "differences": [
                {
                    "where": difference.where,
                    "predicate": f"{difference.predicate.name}/{difference.predicate.arity}",
                    "missing": difference.missing,
                    "extra": difference.extra,
                    "example": format_atom(difference.example),
                }
                for difference in self.differences
            ],
        }


def verified(
    version: int, state: State, program: RuleBase, engine: Engine, settings: Settings
) -> Verification:
    """Recompute a program from the explicit facts of a state, and compare the result with the state."""
    # By comparisons with the clock, which every engine evaluates and no maintenance of windows has touched.
    rules = {key: by_clock(rule) for key, rule in program.rules.items()}
    fresh = engine.recompute(rules, program.graph, state, settings)
    count, digest = state.digest(settings.yield_point)
    differences = tuple(_differences(state, fresh, program, settings.yield_point))
    return Verification(version, engine.name, count, f"{digest:0{_DIGEST_BITS // 4}x}", differences)


def _differences(
    state: State, fresh: State, program: RuleBase, yield_point: YieldPoint
) -> Iterator[Difference]:
    """Yield the differences of the visible facts first, then node by node."""
    nodes = [frozenset(node.rules) for node in program.graph.order]
    order = {node: number for number, node in enumerate((None, *nodes))}
    mismatches = state.mismatches(fresh, nodes, yield_point)
    for mismatch in sorted(mismatches, key=lambda m: (order[m.node], m.predicate)):
        node = mismatch.node
        where = "visible facts" if node is None else f"segment of {_names(program, node)}"
        yield Difference(where, mismatch.predicate, mismatch.missing, mismatch.extra, mismatch.example)


def _names(program: RuleBase, node: frozenset[str]) -> str:
    rules = [program.rules[key] for key in sorted(node)]
    return ", ".join(rule.label or format_rule(rule) for rule in rules)
