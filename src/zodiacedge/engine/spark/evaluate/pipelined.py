"""Several nodes by one plan: neighbours that only join, none of them recursive, evaluated from nothing.

What a node derives is a frame that the next ones read, so Spark sees the whole of it: one job writes what all
of them derive. Frames stand in each other's place as often as they are read, so a plan ends before it gets
too large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.rule_plan import left_over
from zodiacedge.engine.spark.evaluate.seminaive import Node, Result, UnderWay
from zodiacedge.engine.spark.evaluate.strategy import is_recursive
from zodiacedge.engine.spark.storage.dataframes import Frames, tagged, together
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
from zodiacedge.language.checks import body_atoms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.engine.spark.evaluate.seminaive import Setting
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule

# So many relations are read at most where a node's plan is written out.
_MOST_SCANS = 48
_MOST_NODES = 16


def only_joins(rules: Iterable[Rule]) -> bool:
    """Whether a node can be a part of a larger plan: it is not recursive and looks at no values."""
    given = list(rules)
    return not is_recursive(given) and not any(rule.aggregate or left_over(rule.body) for rule in given)


class Length:
    """How large a plan gets, node after node."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._scans: dict[Relation, int] = {}
        self._nodes = 0

    def takes(self, rules: Iterable[Rule]) -> bool:
        """Whether one more node still fits; if so it is taken."""
        given = list(rules)
        atoms = (atom for rule in given for atom in body_atoms(rule.body))
        scans = sum(1 + self._scans.get(Relation.of(atom), 0) for atom in atoms)
        if scans > _MOST_SCANS or self._nodes == _MOST_NODES:
            return False
        self._nodes += 1
        for relation in {Relation.of(rule.head) for rule in given}:
            self._scans[relation] = self._scans.get(relation, 0) + scans
        return True


def evaluate(nodes: Sequence[Mapping[str, Rule]], setting: Setting, terms: TermFiles) -> list[Result]:
    """Evaluate nodes, in topological order: one job."""
    under_way: dict[Relation, tuple[UnderWay, ...]] = {}
    written: list[tuple[int, Relation]] = []
    pieces = []
    for number, rules in enumerate(nodes):
        derived = Node(rules, replace(setting, under_way=dict(under_way)), terms).derived()
        for relation, one in derived.items():
            under_way[relation] = (*under_way.get(relation, ()), one)
            written.append((number, relation))
            pieces.append(one.frame)
    width = max(relation.width for _, relation in written)
    rows = together([tagged(frame, tag, width) for tag, frame in enumerate(pieces)])
    relations = [relation for _, relation in written]
    frames = Frames(setting.workspace)
    results = [Result(terms=terms, rounds=1) for _ in nodes]
    for tag, parts in frames.write(rows, relations, "deriving facts", setting.settings.turn).items():
        number, relation = written[tag]
        results[number].contents[relation] = SignedFiles.of(*parts)
    return results
