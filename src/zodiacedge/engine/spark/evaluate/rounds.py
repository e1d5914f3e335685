"""Semi-naive rounds of a recursive node on hash partitions that derive facts of each other.

Facts are placed by the keys of joins (`plan.placement`). In each round a task per partition applies the rules
until it derives nothing more for itself (`round_task`), and writes what it derives for other partitions into
a file, which they read in the next round. A partition that receives nothing has no task. Small relations are
broadcast. Where partitions grow beyond what a task takes, their number is doubled. A last job writes the
segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.evaluate.inputs import Input, inputs_for, read_by, wanted_by
from zodiacedge.engine.spark.evaluate.round_task import (
    PlacedBlock,
    RoundProgram,
    RoundTask,
    SegmentTask,
    placed,
    run,
    write_segment,
)
from zodiacedge.engine.spark.evaluate.seminaive import Result
from zodiacedge.engine.spark.partition.shuffle import ShuffleInput, shuffle_into
from zodiacedge.engine.spark.storage.files import Relation, SignedFiles
from zodiacedge.language.ast import Atom, Negation
from zodiacedge.plan.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.spark.evaluate.round_task import RoundResult
    from zodiacedge.engine.spark.evaluate.seminaive import Setting
    from zodiacedge.engine.spark.storage.files import Owners
    from zodiacedge.engine.spark.storage.terms import TermFiles
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term

# A relation that the node does not derive is broadcast if it has at most so many rows.
_BROADCAST_ROWS = 500_000
# More rows of a partition are worth another task, as long as there are cores without one.
_ROWS_PER_TASK = 500_000
# A partition takes so many rows where no limit is given.
_MOST_ROWS = 4_000_000
_LEAST_PARTITIONS = 2
# The driver knows a block for each pair of partitions.
_MOST_PARTITIONS = 512
# A task applies the rules at most so often in one job: limits are checked in between.
_MOST_LOCAL_ROUNDS = 64


def placement_of(rules: Mapping[str, Rule], keys: Mapping[Term, int], owners: Owners) -> Placement | None:
    """Return the placement of a node's rules, given the facts of other owners; None if it has none."""

    def is_small(atom: Atom) -> bool:
        relation, _ = read_by(atom, keys)
        return sum(owner.content(relation).rows for owner in owners.values()) <= _BROADCAST_ROWS

    return Placement.of(rules, is_small)


def evaluate(placement: Placement, setting: Setting, terms: TermFiles) -> Result:
    """Evaluate a node from scratch."""
    return _Rounds(placement, setting, terms).run()


@dataclass
class _Partition:
    """The blocks of one partition."""

    outside: list[PlacedBlock] = field(default_factory=list)
    known: list[PlacedBlock] = field(default_factory=list)
    inbox: list[PlacedBlock] = field(default_factory=list)
    rows: int = 0

    def copy(self) -> _Partition:
        """Return the same blocks: two partitions in place of one read their own rows of each."""
        return _Partition(list(self.outside), list(self.known), list(self.inbox), self.rows // 2)


class _Rounds:
    def __init__(self, placement: Placement, setting: Setting, terms: TermFiles) -> None:
        self._setting = setting
        self._workspace = setting.workspace
        self._placement = placement
        self._terms = terms
        self._yield_point = setting.settings.yield_point
        outside, broadcast = self._inputs()
        self._program = RoundProgram(
            placement=placement,
            keys=setting.keys,
            outside=outside,
            broadcast=broadcast,
            folder=self._workspace.scratch.folder,
            hashing=self._workspace.hashing,
            registry=setting.settings.registry,
        )
        rows = sum(content.rows for read in outside for content in read.before)
        self._partitions = [_Partition() for _ in range(self._count(rows, _LEAST_PARTITIONS))]

    def run(self) -> Result:
        """Run rounds until no partition derives rows for another; then write the segment."""
        self._shuffle()
        waiting = list(range(len(self._partitions)))
        rounds = facts = 0
        while waiting:
            results = self._round(waiting, rounds)
            rounds += max(result.rounds for result in results)
            facts += sum(result.facts for result in results)
            self._setting.watch(rounds, facts)
            self._divide()
            waiting = [number for number, partition in enumerate(self._partitions) if partition.inbox]
        return Result(self._written(), terms=self._terms, rounds=max(rounds, 1), stamped=True)

    def _inputs(self) -> tuple[tuple[Input, ...], tuple[Input, ...]]:
        """Return the files of other owners: by placed relation, and those to broadcast."""
        keys, owners = self._setting.keys, tuple(self._setting.after.values())
        read_everywhere: list[Atom] = []
        read_placed: list[Atom] = []
        for rule in self._placement.rules:
            for position, conjunct in enumerate(rule.body):
                if isinstance(conjunct, Atom | Negation):
                    atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
                    (read_placed if position in rule.placed else read_everywhere).append(atom)
        outside = tuple(
            replace(read, relation=placed(read.relation, argument))
            for read in inputs_for(wanted_by(read_placed, keys), owners, owners)
            for argument in self._placement.arguments[read.relation]
        )
        return outside, inputs_for(wanted_by(read_everywhere, keys), owners, owners)

    def _shuffle(self) -> None:
        """Hash-partition the facts of other owners, once for each placement."""
        arguments = self._arguments
        inputs = [
            ShuffleInput(file, read.relation, arguments[read.relation], read.classes)
            for read in self._program.outside
            for file in {file.path: file for content in read.before for file in content.parts}.values()
            if read.classes is None or not read.classes.isdisjoint(file.classes)
        ]
        count = len(self._partitions)
        shuffled = shuffle_into(self._workspace, inputs, count, self._yield_point)
        for partition, part in zip(self._partitions, shuffled, strict=True):
            partition.outside = [PlacedBlock(block, count) for block in part.blocks]

    @property
    def _arguments(self) -> dict[Relation, int | None]:
        return {
            placed(name, argument): argument
            for name, arguments in self._placement.arguments.items()
            for argument in arguments
        }

    def _round(self, waiting: Iterable[int], rounds: int) -> list[RoundResult]:
        count = len(self._partitions)
        limit = self._setting.settings.limits.rounds
        left = _MOST_LOCAL_ROUNDS if limit is None else min(_MOST_LOCAL_ROUNDS, limit - rounds + 1)
        tasks = [
            RoundTask(
                program=self._program,
                number=number,
                partitions=count,
                outside=tuple(partition.outside),
                known=tuple(partition.known),
                inbox=tuple(partition.inbox),
                terms=self._terms,
                rounds=rounds,
                most_rounds=left,
            )
            for number in waiting
            for partition in (self._partitions[number],)
        ]
        why = f"deriving facts in partitions, from round {rounds + 1}"
        results = self._workspace.jobs.each(run, tasks, why, self._yield_point)
        for task in tasks:
            self._partitions[task.number].inbox = []
        for task, result in zip(tasks, results, strict=True):
            self._workspace.adopt(result.known.file)
            if result.known.rows:
                self._partitions[task.number].known.append(PlacedBlock(result.known, count))
            self._partitions[task.number].rows = result.rows
            for number, block in enumerate(result.outbox):
                if block.rows:
                    self._partitions[number].inbox.append(PlacedBlock(block, count))
        return results

    def _count(self, rows: int, least: int) -> int:
        """Return the number of partitions for so many rows: each fits a task, and cores have work."""
        most = self._workspace.options.gather_rows or _MOST_ROWS
        useful = min(self._workspace.jobs.cores, -(-rows // _ROWS_PER_TASK))
        return min(max(-(-rows // most), useful, least), _MOST_PARTITIONS)

    def _divide(self) -> None:
        """Double the partitions while they are too few for their rows."""
        rows = sum(partition.rows for partition in self._partitions)
        while self._count(rows, 1) >= 2 * len(self._partitions):
            self._partitions += [partition.copy() for partition in self._partitions]

    def _written(self) -> dict[Relation, SignedFiles]:
        """Write the segment: the rows of each relation at its home."""
        count = len(self._partitions)
        homes = {
            placed(name, self._placement.arguments[name][0]): Relation(*name)
            for name in self._placement.heads
        }
        folder, arguments = self._program.folder, self._arguments
        tasks = [
            SegmentTask(folder, homes, number, count, arguments, tuple(partition.known))
            for number, partition in enumerate(self._partitions)
            if partition.known
        ]
        written = self._workspace.jobs.each(write_segment, tasks, "writing facts", self._yield_point)
        contents: dict[Relation, SignedFiles] = {}
        for files in written:
            for relation, file in files.items():
                adopted = self._workspace.adopt(file)
                contents[relation] = contents.get(relation, SignedFiles()).then([adopted])
        return contents
