"""A round of a recursive node on one hash partition: a task that derives all it can from its rows.

The task reads the rows of its partition (`plan.placement`): those of other owners, those derived in earlier
rounds, and those that other partitions derived in the last one, which are the first delta. It applies the
rules with the kernels of the embedded engine. What it derives for itself is its next delta, until there is
none; what it derives for other partitions goes into a file, a block for each.

At its home a fact has a stamp: the round in which it was first derived, from facts that all have smaller
ones. A partition that derives a fact late may have derived it before its home knew, so the home takes the
least of the stamps that arrive.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.machine.assemble import Assembly, Frame
from zodiacedge.engine.embedded.machine.execute import execute
from zodiacedge.engine.embedded.machine.sources import TableSource
from zodiacedge.engine.embedded.storage.database import Database
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, TableView
from zodiacedge.engine.embedded.storage.row_algebra import distinct
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.partition.shuffle import (
    Block,
    PartitionInput,
    PartitionReader,
    partitions_of,
    read_block,
    write_blocks,
)
from zodiacedge.engine.spark.storage.embedded_tables import Translation, needs_values
from zodiacedge.engine.spark.storage.files import DataFile, Folder, Relation
from zodiacedge.engine.spark.storage.terms import Hashing, TermFiles
from zodiacedge.language.ast import Atom, Negation
from zodiacedge.plan.algebra import RelationVersion
from zodiacedge.plan.order import OWN_ROWS, arrange, expected
from zodiacedge.plan.variants import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from zodiacedge.engine.embedded.types import Ids, Keys
    from zodiacedge.engine.spark.evaluate.inputs import Input
    from zodiacedge.language.ast import Aggregate, Conjunct
    from zodiacedge.plan.placement import Argument, PlacedRule, Placement, RelationName
    from zodiacedge.terms import Term

    Columns = list[Keys]
    # Columns of fingerprints, and at home the stamps of the rows.
    StampedColumns = tuple[Columns, Ids | None]

# A task ends its round after so many new rows, and goes on in the next.
_MOST_NEW_ROWS = 4_000_000
# The rows that a worker keeps in memory between the rounds.
_MOST_LOADED_ROWS = 10_000_000
_ROWS = "rows"
# Known rows with smaller stamps than those that they were written with.
_SOONER = "sooner"
_NEVER = np.iinfo(np.int32).max


class PlacedBlock(NamedTuple):
    """A block of rows, and the number of partitions for which it was written."""

    block: Block
    partitions: int


@dataclass(frozen=True)
class RoundProgram:
    """The input that the tasks of all rounds share."""

    placement: Placement
    keys: Mapping[Term, int]
    """The fingerprints of the terms of rules."""
    outside: tuple[Input, ...]
    """The files of other owners by placed relation (`placed`)."""
    broadcast: tuple[Input, ...]
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)
    evaluation: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class RoundTask:
    """The input of a task: the rows of one partition."""

    program: RoundProgram
    number: int
    partitions: int
    outside: tuple[PlacedBlock, ...]
    known: tuple[PlacedBlock, ...]
    """The rows of earlier rounds, by placed relation."""
    inbox: tuple[PlacedBlock, ...]
    """The rows that were derived for this partition in the last round."""
    terms: TermFiles
    rounds: int
    """The number of rounds before; if there were none, the rows of other owners are new."""
    most_rounds: int
    """The maximum number of local rounds."""


@dataclass(frozen=True)
class RoundResult:
    """The result of a task."""

    known: Block
    """The new rows of this partition."""
    outbox: tuple[Block, ...]
    """The rows derived for each partition."""
    facts: int
    """The number of new facts of the node."""
    rows: int
    """The number of rows of this partition, in all placements."""
    rounds: int


def placed(name: RelationName, argument: Argument) -> Relation:
    """Return the relation of the rows that are placed by an argument."""
    # A name that no predicate of a user can have.
    by = "row" if argument is None else f"argument {argument + 1}"
    return Relation(f"{name[0]} by {by}", name[1])


def run(task: RoundTask) -> RoundResult:
    """Apply the rules on one partition until it derives nothing more for itself."""
    partition = _LOADED.take(task) or _Partition(task)
    partition.start(task)
    rounds = _LocalRounds(partition, task).run()
    result = partition.result(task, rounds)
    _LOADED.keep(partition)
    return result


@dataclass(slots=True)
class _PlacedTable:
    """The rows of a relation that are placed by one argument, of all owners."""

    relation: Relation
    argument: Argument
    visible: Table
    underived: Table
    """At home: the rows of other owners that the node has not derived."""
    is_home: bool
    stamps: Ids = field(default_factory=lambda: np.zeros(0, np.int32))
    """At home: the stamp of each visible row, `_NEVER` if the node has not derived it."""
    start: int = 0
    """The number of rows at the start of the task."""
    rederived: list[Ids] = field(default_factory=list)
    """The rows of other owners that the node derived in this task."""
    sooner: tuple[Ids, Ids] | None = None
    """The rows of earlier tasks that got a smaller stamp in this one, and their stamps."""

    def load(self, rows: Ids, stamps: Ids | None) -> None:
        """Append rows derived in earlier tasks."""
        if len(self.underived):
            again = self.underived.mask(rows)
            self.underived.delete(rows[again])
            if stamps is not None:
                self._stamp(rows[again], stamps[again])
                stamps = stamps[~again]
            rows = rows[~again]
        before = len(self.visible)
        if self.visible.has_hash_set and len(rows) < len(self.visible):
            self.visible.insert(rows)
        else:
            self.visible.append_distinct(rows)
        if stamps is not None:
            self._room()[before : len(self.visible)] = stamps

    def _room(self) -> Ids:
        """Return the stamps of all visible rows; those of new rows may be set."""
        count = len(self.visible)
        if len(self.stamps) < count:
            more = np.full(max(count, len(self.stamps) * 3 // 2) - len(self.stamps), _NEVER, np.int32)
            self.stamps = np.concatenate((self.stamps, more))
        return self.stamps

    def _stamp(self, rows: Ids, stamps: Ids | int) -> None:
        """Give visible rows stamps, of several the smallest."""
        np.minimum.at(self._room(), self.visible.positions(rows), stamps)

    def hasten(self, rows: Ids, stamps: Ids | None) -> None:
        """Give rows of earlier tasks the smaller stamps that they got later."""
        if stamps is None:
            raise AssertionError(self.relation)
        self._stamp(rows, stamps)

    def begin(self, *, first: bool) -> None:
        """Begin a task; `first` says whether all rows are new."""
        self.start = len(self.visible)
        self.rederived = []
        self.sooner = None
        self.visible.settle()
        if first:
            self.visible.cells[L.T_LOW] = 0

    def receive(self, rows: Ids, stamps: Ids | None) -> None:
        """Insert the rows that were derived for this partition."""
        self._insert(rows)
        if stamps is None:
            return
        known = self._room()[: self.start].copy()
        self._stamp(rows, stamps)
        sooner = np.flatnonzero((self.stamps[: self.start] < known) & (known < _NEVER))
        self.sooner = self.visible.rows[sooner], self.stamps[sooner]

    def insert(self, rows: Ids, stamp: int) -> None:
        """Insert rows that were derived in a round; those that were not visible are the next delta."""
        again = self._insert(rows)
        if self.is_home:
            self._room()[self.visible.cells[L.T_LOW] : self.visible.cells[L.T_HIGH]] = stamp
            self._stamp(again, stamp)

    def _insert(self, rows: Ids) -> Ids:
        """Insert rows; return those of other owners that the node derives for the first time."""
        cells = self.visible.cells
        before = len(self.visible)
        self.visible.insert(rows)
        cells[L.T_LOW], cells[L.T_HIGH] = before, len(self.visible)
        if not len(self.underived):
            return rows[:0]
        again = distinct(self.underived.filter(rows, present=True))
        self.underived.delete(again)
        self.rederived.append(again)
        return again

    def written(self, columns: Callable[[Ids], Columns]) -> Iterator[tuple[str, Relation, Columns]]:
        """Yield what the node derived in this task, at home with stamps."""
        rows = np.concatenate((self.visible.rows[self.start :], *self.rederived))
        if not self.is_home:
            if len(rows):
                yield _ROWS, self.relation, columns(rows)
            return
        stamps = self.stamps[self.start : len(self.visible)]
        if self.rederived:
            again = self.stamps[self.visible.positions(np.concatenate(self.rederived))]
            stamps = np.concatenate((stamps, again))
        for kind, chosen, numbers in ((_ROWS, rows, stamps), (_SOONER, *(self.sooner or (rows[:0], stamps)))):
            if len(chosen):
                yield kind, self.relation.with_stamps, [*columns(chosen), numbers.astype(np.int64)]

    @property
    def facts(self) -> int:
        """The number of facts that the node derived in this task."""
        return len(self.visible) - self.start + sum(map(len, self.rederived))

    @property
    def has_delta(self) -> bool:
        cells = self.visible.cells
        return bool(cells[L.T_LOW] < cells[L.T_HIGH])


class _Partition:
    """The rows of one partition."""

    def __init__(self, task: RoundTask) -> None:
        """Read the rows of other owners."""
        self.number, self.partitions = task.number, task.partitions
        self.program = program = task.program
        self.with_values = any(needs_values(rule.body) for rule in program.placement.rules)
        self.read: set[str] = set()
        """The files of derived rows that were read or written."""
        self._arguments = {
            placed(name, argument): argument
            for name, known in program.placement.arguments.items()
            for argument in known
        }
        broadcast = {read.relation: read.classes for read in program.broadcast}
        reader = PartitionReader(PartitionInput(tuple(block for block, _ in task.outside), broadcast))
        outside = {read.relation: reader.read(read.relation, read.before) for read in program.outside}
        everywhere = [reader.read(read.relation, read.before, read.classes) for read in program.broadcast]
        self.translation = Translation(program.keys, program.hashing)
        if self.with_values:
            derived = (*self._read(task.known).values(), *self._read(task.inbox).values())
            pieces = (column for columns, _ in derived for column in columns)
            self.translation.load_values((*reader.seen(), *pieces), task.terms)
        self._partition_of_id: Keys = np.zeros(0, np.int64)
        self.by_name: dict[RelationName, Table] = {
            read.relation: read.table(self.translation) for read in everywhere
        }
        divided = any(partitions != task.partitions for _, partitions in task.outside)
        self.placed: dict[RelationName, list[_PlacedTable]] = {}
        for name, arguments in program.placement.arguments.items():
            self.placed[name] = []
            for argument in arguments:
                relation = placed(name, argument)
                visible = Table(name[1])
                if relation in outside:
                    visible = outside[relation].table(self.translation)
                if divided:
                    visible = self._own_part(visible, argument)
                is_home = name in program.placement.heads and argument == arguments[0]
                underived = Table.of(visible.rows) if is_home else Table(name[1])
                self.placed[name].append(_PlacedTable(relation, argument, visible, underived, is_home))
                self.by_name[relation] = visible
        heads = {_name(rule.head) for rule in program.placement.rules}
        self.own = {placed(name, n) for name in heads for n in program.placement.arguments[name]}

    def start(self, task: RoundTask) -> None:
        """Read the derived rows that were not read yet, and those that are new."""
        unread = [known for known in task.known if known.block.file.path not in self.read]
        self.read.update(block.file.path for block, _ in unread)
        known, sooner, inbox = self._read(unread), self._read(unread, _SOONER), self._read(task.inbox)
        for table in self.tables():
            arity = table.relation.arity
            if table.relation in known:
                columns, stamps = known[table.relation]
                table.load(self.translation.rows(columns, arity), stamps)
            if table.relation in sooner:
                columns, stamps = sooner[table.relation]
                table.hasten(self.translation.rows(columns, arity), stamps)
            table.begin(first=not task.rounds)
            if table.relation in inbox:
                columns, stamps = inbox[table.relation]
                table.receive(self.translation.rows(columns, arity), stamps)

    def _read(self, blocks: Iterable[PlacedBlock], kind: str = _ROWS) -> dict[Relation, StampedColumns]:
        return read_own(blocks, kind, self._arguments, self.number, self.partitions)

    def _own_part(self, outside: Table, argument: Argument) -> Table:
        rows = outside.rows
        return Table.of(np.ascontiguousarray(rows[self.partitions_of(rows, argument) == self.number]))

    def partitions_of(self, rows: Ids, argument: Argument) -> Keys:
        """Return the partition of each row."""
        partitions = self.partitions
        if argument is None:
            keys = self.translation.keys(rows.ravel()).reshape(rows.shape)
            columns = [keys[:, n] for n in range(rows.shape[1])] or [np.zeros(len(rows), np.int64)]
            return partitions_of(columns, None, partitions)
        if len(self._partition_of_id) < len(self.translation.dictionary):
            ids = np.arange(len(self.translation.dictionary), dtype=np.int32)
            self._partition_of_id = partitions_of([self.translation.keys(ids)], 0, partitions)
        return self._partition_of_id[rows[:, argument]]

    def columns(self, rows: Ids) -> Columns:
        """Return rows as columns of fingerprints."""
        if not rows.shape[1]:
            return [np.zeros(len(rows), np.int64)]
        return [self.translation.keys(np.ascontiguousarray(rows[:, n])) for n in range(rows.shape[1])]

    def tables(self) -> Iterator[_PlacedTable]:
        """Yield all placed tables."""
        for tables in self.placed.values():
            yield from tables

    @property
    def rows(self) -> int:
        """The number of rows, in all placements."""
        return sum(len(table.visible) for table in self.tables())

    def result(self, task: RoundTask, rounds: _LocalRounds) -> RoundResult:
        """Write the new rows of this partition, and those for the others."""
        blocks: list[list[tuple[str, Relation, Columns]]] = [[] for _ in range(task.partitions)]
        for relation, rows, targets, stamps in rounds.sent():
            order = np.argsort(targets, kind="stable")
            ends = np.searchsorted(targets[order], np.arange(task.partitions + 1))
            columns = self.columns(rows[order])
            if stamps is not None:
                columns.append(stamps[order])
            for number, block in enumerate(blocks):
                if ends[number] < ends[number + 1]:
                    part = slice(ends[number], ends[number + 1])
                    block.append((_ROWS, relation, [column[part] for column in columns]))
        known = [written for table in self.tables() for written in table.written(self.columns)]
        *outbox, kept = write_blocks(task.program.folder, [*blocks, known])
        self.read.add(kept.file.path)
        homes = [self.placed[name][0] for name in task.program.placement.heads]
        return RoundResult(
            known=kept,
            outbox=tuple(outbox),
            facts=sum(home.facts for home in homes),
            rows=self.rows,
            rounds=rounds.rounds,
        )


class _LocalRounds:
    """Semi-naive rounds on one partition."""

    def __init__(self, partition: _Partition, task: RoundTask) -> None:
        """Plan and assemble the rules for the tables of a partition."""
        self._partition = partition
        self._before, self._most = task.rounds, task.most_rounds
        program = task.program
        self._registry = program.registry
        reads = _Reads(partition)
        self._assembly = Assembly(Database(partition.translation.terms), reads, program.registry)
        self._derived: dict[RelationName, Table] = {}
        for number, rule in enumerate(program.placement.rules):
            target = self._derived.setdefault(_name(rule.head), Table(len(rule.head.args)))
            target.ensure_hash_set()
            body = tuple(_placed_conjunct(rule, position) for position in range(len(rule.body)))
            positions = [position for position in rule.placed if isinstance(body[position], Atom)]
            for delta in positions:
                steps = arrange(body, positions, delta, reads, needed(body, rule.head.args))
                self._assembly.add(steps, rule.head.args, target, later=False, rule=number)
        self._taken = dict.fromkeys(self._derived, 0)
        # How many rows were derived by the end of each round.
        self._ends: dict[RelationName, list[int]] = {name: [] for name in self._derived}
        self._frame: Frame = self._assembly.frame([], len(program.placement.rules))
        self.rounds = 0

    def run(self) -> _LocalRounds:
        """Run until no delta is left, or much was derived."""
        partition = self._partition
        while any(table.has_delta for table in partition.tables()):
            execute(self._assembly, self._frame, self._registry, _unwatched)
            self.rounds += 1
            for name, derived in self._derived.items():
                self._ends[name].append(len(derived))
            if self.rounds >= self._most or sum(map(len, self._derived.values())) > _MOST_NEW_ROWS:
                break
            for name, derived in self._derived.items():
                rows = derived.rows[self._taken[name] :]
                self._taken[name] = len(derived)
                for table in partition.placed[name]:
                    here = partition.partitions_of(rows, table.argument) == partition.number
                    table.insert(rows[here], self._before + self.rounds)
            for name, tables in partition.placed.items():
                if name not in self._derived:
                    for table in tables:
                        table.visible.settle()
        return self

    def sent(self) -> Iterator[tuple[Relation, Ids, Keys, Keys | None]]:
        """Yield the rows derived for other partitions or for the next round, and the partition of each.

        Rows that are sent home have stamps.
        """
        partition = self._partition
        for name, derived in self._derived.items():
            for table in partition.placed[name]:
                targets = partition.partitions_of(derived.rows, table.argument)
                sent = targets != partition.number
                sent[self._taken[name] :] = True
                if not table.is_home:
                    yield table.relation, derived.rows[sent], targets[sent], None
                    continue
                rounds = np.searchsorted(self._ends[name], np.flatnonzero(sent), side="right")
                stamps = rounds.astype(np.int64) + (self._before + 1)
                yield table.relation.with_stamps, derived.rows[sent], targets[sent], stamps


@dataclass
class _Reads:
    """The tables that the steps of plans read."""

    partition: _Partition

    def sources(
        self, atom: Atom, read: RelationVersion, *, exact: bool, distinct_rows: bool
    ) -> list[TableSource]:
        """Return the table of an atom."""
        del exact, distinct_rows
        return [TableSource(TableView(self._table(atom), NO_CLASS), read)]

    def absent(self, atom: Atom) -> list[TableSource]:
        """Return the table in which a negated atom must have no match."""
        return [TableSource(TableView(self._table(atom), NO_CLASS), RelationVersion.NEW)]

    def rows(self, aggregate: Aggregate) -> list[TableSource]:
        """Raise: aggregates are not placed."""
        raise AssertionError(aggregate)

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that match an atom."""
        # What the node derives itself is expected to be much.
        least = OWN_ROWS if (atom.relation, len(atom.args)) in self.partition.own else 0
        return expected(max(len(self._table(atom)), least), atom, bound)

    def _table(self, atom: Atom) -> Table:
        return self.partition.by_name[atom.relation, len(atom.args)]


def _placed_conjunct(rule: PlacedRule, position: int) -> Conjunct:
    """Return a conjunct of a body; the relation of a placed atom is that of its placed rows."""
    conjunct = rule.body[position]
    if position not in rule.placed:
        return conjunct
    atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
    if not isinstance(atom, Atom):
        raise TypeError(atom)
    renamed = Atom(placed(_name(atom), rule.placed[position]).name, atom.args)
    return Negation(renamed) if isinstance(conjunct, Negation) else renamed


def _name(atom: Atom) -> RelationName:
    return atom.relation, len(atom.args)


def _unwatched(rounds: int) -> None:
    """Check no limits: the driver does, between the rounds."""
    del rounds


# Loaded partitions.


class _Loaded:
    """The partitions that this worker has loaded in earlier rounds of an evaluation, up to a limit of rows.

    A worker that gets a partition again reads only what was derived since.
    """

    def __init__(self) -> None:
        self._evaluation = ""
        self._partitions: dict[tuple[int, int], _Partition] = {}

    def take(self, task: RoundTask) -> _Partition | None:
        """Take out a partition, if its rows are among those of a task: a failed task leaves none behind."""
        if self._evaluation != task.program.evaluation:
            self._evaluation = task.program.evaluation
            self._partitions = {}
        partition = self._partitions.pop((task.partitions, task.number), None)
        known = {block.file.path for block, _ in task.known}
        return partition if partition is not None and partition.read <= known else None

    def keep(self, partition: _Partition) -> None:
        """Keep a partition for the next round, unless its terms must be loaded again."""
        rows = sum(loaded.rows for loaded in (*self._partitions.values(), partition))
        if rows > _MOST_LOADED_ROWS:
            self._partitions = {}
        if partition.program.evaluation == self._evaluation and not partition.with_values:
            self._partitions[partition.partitions, partition.number] = partition


_LOADED = _Loaded()


# The segment.


@dataclass(frozen=True)
class SegmentTask:
    """The input of a task that writes the facts that a node derived on one partition."""

    folder: Folder
    homes: Mapping[Relation, Relation]
    """The relations of the node, by that of the rows placed at their home."""
    number: int
    partitions: int
    arguments: Mapping[Relation, Argument]
    known: tuple[PlacedBlock, ...]


def write_segment(task: SegmentTask) -> dict[Relation, DataFile]:
    """Write the facts of one partition, with their stamps, as files."""
    rows, sooner = (
        read_own(task.known, kind, task.arguments, task.number, task.partitions) for kind in (_ROWS, _SOONER)
    )
    written = {}
    for home, relation in task.homes.items():
        if home not in rows:
            continue
        columns, stamps = rows[home]
        if stamps is None:
            raise AssertionError(home)
        late, smaller = sooner.get(home, ([], None))
        if smaller is not None:
            translation = Translation({}, Hashing())
            table = Table.of(translation.rows(columns, relation.arity))
            np.minimum.at(stamps, table.positions(translation.rows(late, relation.arity)), smaller)
        written[relation] = task.folder.write_indexed(relation, [*columns, stamps.astype(np.int64)])
    return written


def read_own(
    blocks: Iterable[PlacedBlock],
    kind: str,
    arguments: Mapping[Relation, Argument],
    number: int,
    partitions: int,
) -> dict[Relation, StampedColumns]:
    """Read the rows of one partition and one kind from blocks, and at home their stamps."""
    pieces: defaultdict[Relation, list[Columns]] = defaultdict(list)
    for block, divided in blocks:
        for (name, relation), columns in read_block(block).items():
            if name != kind:
                continue
            kept = columns
            if divided != partitions:
                # Blocks that were written for fewer partitions have rows of others.
                argument = arguments[_unstamped(relation, arguments)]
                width = len(columns) - (relation not in arguments)
                targets = partitions_of(columns[:width], argument, partitions)
                kept = [column[targets == number] for column in columns]
            pieces[relation].append(kept)
    read: dict[Relation, StampedColumns] = {}
    for relation, several in pieces.items():
        columns = [np.concatenate(column) for column in zip(*several, strict=True)]
        if relation in arguments:
            read[relation] = columns, None
        else:
            read[_unstamped(relation, arguments)] = columns[:-1], columns[-1].astype(np.int32)
    return read


def _unstamped(relation: Relation, arguments: Mapping[Relation, Argument]) -> Relation:
    """Return the placed relation that a relation with stamps is of."""
    return next(known for known in arguments if relation in {known, known.with_stamps})
