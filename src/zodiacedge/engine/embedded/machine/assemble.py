"""Assembly of plans to code of the rule machine: steps, columns, sources.

An `Assembly` collects the variants of one node and owns the arrays behind the machine's frame. It chooses the
access path of each atom once, before the node runs. `sources` chooses the tables, and `expressions.compile`
compiles expressions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.expressions.compile import ExpressionCode
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.machine.sources import Reads, TableSource
from zodiacedge.engine.embedded.storage.hash_index import has_column
from zodiacedge.engine.embedded.storage.relation import NO_CLASS, TableView
from zodiacedge.engine.embedded.storage.table import mark_terms
from zodiacedge.language.ast import Expression, Variable
from zodiacedge.plan.algebra import Absent, AggregateRows, Let, Match, RelationVersion, Step, Test
from zodiacedge.plan.order import used_variables
from zodiacedge.plan.product import product_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.expressions.host_functions import HostFunction
    from zodiacedge.engine.embedded.storage.database import FactTables
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.engine.registry import Registry
    from zodiacedge.language.ast import Argument
    from zodiacedge.plan.product import Product

_COMPARISONS = {"=": L.EQUAL, "!=": L.UNEQUAL, "<": L.LESS, "<=": L.AT_MOST, ">": L.GREATER, ">=": L.AT_LEAST}
# A value on the stack of expressions: its type and its bits.
_VALUE_WORDS = 2
_RANGES = {
    RelationVersion.OLD: L.RANGE_OLD,
    RelationVersion.DELTA: L.RANGE_DELTA,
    RelationVersion.NEW: L.RANGE_NEW,
}
OUT_WORDS = 1 << 21
# The groups of a delta are filtered by a table of at most so many rows per term.
_ROWS_PER_TERM = 2


class Frame(NamedTuple):
    """The machine's frame and its state, as words and as addresses."""

    words: NDArray[np.int64]
    at: int
    state: NDArray[np.int64]
    state_at: int


@dataclass(slots=True)
class Assembly:
    """The variants of one node, and the memory that they run in."""

    store: FactTables
    reads: Reads
    registry: Registry
    share: tuple[int, int] = (0, 1)
    """The slice of the rows of a plan's first atom that this assembly reads, and the number of slices."""
    _variants: list[int] = field(default_factory=list)
    _steps: list[int] = field(default_factory=list)
    _spec: list[int] = field(default_factory=list)
    _sources: list[int] = field(default_factory=list)
    _excluded: list[int] = field(default_factory=list)
    _arrays: dict[int, NDArray[np.int64] | NDArray[np.int32]] = field(default_factory=dict)
    _kept: list[TableSource] = field(default_factory=list)
    """All sources, so that their tables outlive the code, which has only addresses."""
    _most_registers: int = 1
    _most_steps: int = 1
    _most_operations: int = 1
    _filters: list[NDArray[np.uint8]] = field(default_factory=list)
    _names: dict[int, dict[Variable, int]] = field(default_factory=dict)
    targets: list[Table] = field(default_factory=list)
    _expressions: ExpressionCode = field(init=False)

    def __post_init__(self) -> None:
        """Start with no expressions."""
        self._expressions = ExpressionCode(self.store.terms, self.registry)

    @property
    def hosts(self) -> Sequence[HostFunction]:
        """The host functions that expressions call."""
        return self._expressions.hosts

    def add(
        self,
        steps: Sequence[Step],
        head: Sequence[Argument],
        target: Table,
        *,
        later: bool,
        rule: int,
        exact: bool = False,
        every: bool = False,
        distinct_rows: bool = False,
        products: bool = False,
    ) -> None:
        """Add a variant of a rule.

        Args:
            steps: The plan.
            head: Terms and variables of each row that the variant emits.
            target: The table that the rows are inserted into.
            later: Whether the variant runs in every round but the first, or in the first only.
            rule: The number of the rule, for counts.
            exact: Whether every binding must be emitted exactly once.
            every: Whether to go on to the next binding of a head that is derived already, to count them.
            distinct_rows: Whether a row that is in two tables must be read once.
            products: Whether heads may be derived as the product of two parts, if the plan allows it.
        """
        first = len(self._steps) // L.STEP_WORDS
        registers: dict[Variable, int] = {}
        # New facts come sorted by their first term only where a bitmap tells them from others.
        grouped = products and target.is_marked and not (exact or every)
        product = product_of(steps, head) if grouped else None
        if product and self._product(product, target, registers):
            self._close(first, target, registers, later=later, rule=rule)
            return
        wanted = {arg for arg in head if isinstance(arg, Variable)}
        # The step that binds the last variable of the head, if another step follows it.
        back = -1
        for number, step in enumerate(steps):
            last = number + 1 == len(steps)
            at = len(self._steps) // L.STEP_WORDS - first
            self._step(
                step,
                registers,
                _needed(steps[number + 1 :], head),
                exact=exact,
                distinct_rows=distinct_rows or exact or not last,
                first=number == 0,
            )
            if wanted and registers.keys() >= wanted:
                wanted, back = set(), at
                if target.is_marked and not (exact or every) and any(map(_joins, steps[number + 1 :])):
                    self._steps += [L.OP_NEW, len(head), self._head(head, registers), 0, 0, 0, 0, 0, 0]
        spec = self._head(head, registers)
        self._fuse(first, spec, len(head))
        if exact or every:
            back = len(self._steps) // L.STEP_WORDS - first - 1
        self._steps += [L.OP_EMIT, len(head), spec, back, 0, 0, 0, target.at, 0]
        self._close(first, target, registers, later=later, rule=rule)

    def _close(
        self, first: int, target: Table, registers: dict[Variable, int], *, later: bool, rule: int
    ) -> None:
        """Close a variant: its last step is added."""
        self._names[rule] = registers
        self.targets.append(target)
        length = len(self._steps) // L.STEP_WORDS - first
        self._variants += [first, L.LATER_ROUNDS if later else L.FIRST_ROUND, length, rule]
        self._most_registers = max(self._most_registers, len(registers) + 1)
        self._most_steps = max(self._most_steps, length)

    def _product(self, product: Product, target: Table, registers: dict[Variable, int]) -> bool:
        """Add the steps of a product; return False if a table of its delta has no pairs."""
        delta = product.delta
        sources = self.reads.sources(delta.atom, delta.read, exact=False, distinct_rows=True)
        if any(source.view.table.arity != len(delta.atom.args) for source in sources):
            return False
        first, table = len(self._steps) // L.STEP_WORDS, len(self._sources) // L.SOURCE_WORDS
        allowed = self._group_filter(product)
        for source in sources:
            self._source(source, (), exact=False)
        group, row = (self._register(variable, registers) for variable in (product.key, product.other))
        self._steps += [L.OP_GROUP, 2, group, table, len(sources), allowed, 0, 0, 0]
        order = (product.first, 1 - product.first)
        waiting = [*product.tests, *product.parts[order[0]], *product.parts[order[1]]]

        def add(steps: Sequence[Step]) -> None:
            for step in steps:
                del waiting[0]
                needed = _needed(waiting, product.head)
                self._step(step, registers, needed, exact=False, distinct_rows=True, first=False)

        add(product.tests)
        parts = len(self._steps)
        self._steps += [L.OP_PARTS, 0, 0, product.first, 0, 0, 0, 0, 0]
        for part in order:
            if part == product.with_delta:
                self._steps += [L.OP_ROW, 2, row, table, len(sources), 0, 0, 0, 0]
            add(product.parts[part])
            last = part == order[1]
            self._gather(registers[product.head[part]], L.OP_PRODUCT if last else L.OP_GATHER, target)
            if not last:
                self._steps[parts + L.P_SECOND] = len(self._steps) // L.STEP_WORDS - first
        return True

    def _excludes(self, step: list[int]) -> bool:
        """Whether a source of an atom excludes rows."""
        first, count = step[L.P_SOURCES], step[L.P_SOURCE_COUNT]
        counts = self._sources[L.S_EXCLUDED_COUNT :: L.SOURCE_WORDS]
        return any(counts[first : first + count])

    def _group_filter(self, product: Product) -> int:
        """Return the address of a bit per term that is clear where a group has no heads, or 0.

        A semi-join with the atoms that the node does not derive, and that begin a part without the delta.
        """
        terms = len(self.store.dictionary)
        allowed: NDArray[np.uint8] | None = None
        for steps in (product.tests, product.parts[1 - product.with_delta]):
            step = steps[0] if steps else None
            if not isinstance(step, Match) or (len(step.atom.args), len(step.bound)) != (2, 1):
                continue
            (column,) = step.bound
            sources = self.reads.sources(step.atom, step.read, exact=False, distinct_rows=False)
            rows = sum(len(source.view.table) for source in sources)
            pairs = all(source.view.table.arity == 2 and not source.grows for source in sources)
            if not pairs or step.atom.args[column] != product.key or rows > _ROWS_PER_TERM * terms:
                continue
            bits = np.zeros(terms // 8 + 1, np.uint8)
            for source in sources:
                mark_terms(source.view.table, column, bits)
            allowed = bits if allowed is None else allowed & bits
        if allowed is None:
            return 0
        self._filters.append(allowed)
        return MEMORY.address(allowed)

    def _register(self, variable: Variable, registers: dict[Variable, int]) -> int:
        """Append a column that is written to a new register; return its offset."""
        self._spec += [L.MODE_OUT, registers.setdefault(variable, len(registers))]
        return len(self._spec) - L.SPEC_WORDS

    def _gather(self, register: int, op: int, target: Table) -> None:
        """Add the last step of a part, fused with the step before it if that enumerates the terms."""
        step = self._steps[-L.STEP_WORDS :]
        before = self._steps[-2 * L.STEP_WORDS : -L.STEP_WORDS]
        column = -1
        if step[0] == L.OP_ROW:
            column = int(self._spec[step[L.P_SPEC] + 1] == register) - 1
        elif step[0] == L.OP_ATOM and step[L.P_PAIRS] and not step[L.P_ONCE]:
            column = self._column(step, register)
            joined = column >= 0 and before[0] == L.OP_ROW
            if joined and not self._excludes(before) and not self._excludes(step):
                self._steps[L.P_FUSED - 2 * L.STEP_WORDS] = L.JOINED
        if column >= 0:
            self._steps[L.P_FUSED - L.STEP_WORDS] = L.GATHERED
            self._steps[L.P_ORIGINS - L.STEP_WORDS] = column
        spec = len(self._spec)
        self._spec += [L.MODE_REGISTER, register]
        self._steps += [op, 1, spec, 0, 0, 0, int(column >= 0), target.at, 0]

    def _head(self, head: Sequence[Argument], registers: Mapping[Variable, int]) -> int:
        """Append the columns of a head; return their offset."""
        spec = len(self._spec)
        for arg in head:
            if isinstance(arg, Variable):
                self._spec += [L.MODE_REGISTER, registers[arg]]
            else:
                self._spec += [L.MODE_TERM, self.store.terms.constant(arg)]
        return spec

    def frame(self, own: Sequence[Table], rules: int) -> Frame:
        """Return the machine's frame; the assembly must outlive it."""
        frame = words(L.FRAME_WORDS)
        state = words(L.STATE_WORDS)
        hosts = [word for host in self.hosts for word in (host.known.at, host.wanted.at, host.arity, 0)]
        self._arrays = {
            L.F_VARIANTS: _array(self._variants),
            L.F_STEPS: _array(self._steps),
            L.F_SPEC: _array(self._spec),
            L.F_SOURCES: _array(self._sources),
            L.F_EXCLUDED: _array(self._excluded),
            L.F_OWN: _array([table.at for table in own]),
            L.F_REGISTERS: words(self._most_registers),
            L.F_CURSORS: words(2 * self._most_steps),
            L.F_SCRATCH: words(max(L.SCRATCH_WORDS, L.STACK + _VALUE_WORDS * (self._most_operations + 1))),
            L.F_HOSTS: _array(hosts),
            L.F_ERRORS: words(rules * (1 + self._most_registers)),
        }
        if L.OP_PRODUCT in self._steps[-L.STEP_WORDS :: -L.STEP_WORDS]:
            self._arrays[L.F_GATHERED] = np.zeros(2 * L.GATHERED_TERMS, np.int32)
        for offset, array in self._arrays.items():
            frame[offset] = MEMORY.address(array)
        frame[L.F_ERROR_WORDS] = 1 + self._most_registers
        frame[L.F_VARIANT_COUNT] = len(self._variants) // L.VARIANT_WORDS
        frame[L.F_OWN_COUNT] = len(own)
        frame[L.F_OUT_WORDS] = OUT_WORDS
        frame[L.F_DICTIONARY] = self.store.dictionary.address
        frame[L.F_STATE] = MEMORY.address(state)
        return Frame(frame, MEMORY.address(frame), state, int(frame[L.F_STATE]))

    def reset_errors(self) -> None:
        """Reset the counts of errors."""
        self._arrays[L.F_ERRORS][:] = 0

    @property
    def has_errors(self) -> bool:
        """Whether a binding of the first rule was without a value."""
        return bool(self._arrays[L.F_ERRORS].item(0))

    def errors(self, rule: int) -> tuple[int, dict[Variable, int]]:
        """Return the number of bindings of a rule without a value, and the first of them."""
        size = 1 + self._most_registers
        count, *registers = self._arrays[L.F_ERRORS][rule * size : (rule + 1) * size].tolist()
        return count, {v: registers[n] for v, n in self._names.get(rule, {}).items()} if count else {}

    def _step(
        self,
        step: Step,
        registers: dict[Variable, int],
        needed: set[Variable],
        *,
        exact: bool,
        distinct_rows: bool,
        first: bool,
    ) -> None:
        match step:
            case Match(atom=atom, read=read, bound=bound, once=once):
                sources = self.reads.sources(atom, read, exact=exact, distinct_rows=distinct_rows)
                if first and self.share != (0, 1):
                    sources = list(map(self._slice, sources))
                self._atom(L.OP_ATOM, atom.args, bound, sources, registers, needed, once=once, exact=exact)
            case AggregateRows(aggregate=aggregate, bound=bound):
                sources = self.reads.rows(aggregate)
                self._atom(L.OP_ATOM, step.columns, bound, sources, registers, needed, exact=exact)
            case Absent(atom=atom, bound=bound):
                sources = self.reads.absent(atom)
                repeated = {v for v in atom.args if isinstance(v, Variable) and atom.args.count(v) > 1}
                local = dict(registers)
                self._atom(L.OP_ABSENT, atom.args, bound, sources, local, repeated, exact=exact)
                self._most_registers = max(self._most_registers, len(local) + 1)
            case Test(comparison=comparison):
                spec = len(self._spec)
                left = self._code(comparison.left, registers)
                right = self._code(comparison.right, registers)
                operator = _COMPARISONS[comparison.operator]
                self._steps += [L.OP_COMPARE, left, spec, right, operator, 0, 0, 0, 0]
            case Let(binding=binding):
                spec = len(self._spec)
                length = self._code(binding.expression, registers)
                checks = int(binding.variable in registers)
                register = registers.setdefault(binding.variable, len(registers))
                self._steps += [L.OP_BIND, length, spec, checks, register, 0, 0, 0, 0]

    def _slice(self, source: TableSource) -> TableSource:
        table = source.view.table.delta_slice(*self.share)
        return TableSource(TableView(table, source.view.member_of), RelationVersion.DELTA, source.excluded)

    def _atom(
        self,
        op: int,
        args: Sequence[Argument],
        bound: tuple[int, ...],
        sources: Sequence[TableSource],
        registers: dict[Variable, int],
        needed: set[Variable],
        *,
        exact: bool,
        once: bool = False,
    ) -> None:
        if sources and all(map(_is_class, sources)) and not isinstance(args[-1], Variable):
            # All rows are members of the class that the atom names: the second column needs no check.
            args, bound = args[:1], tuple(column for column in bound if column == 0)
        spec = len(self._spec)
        for column, arg in enumerate(args):
            if not isinstance(arg, Variable):
                self._spec += [L.MODE_TERM, self.store.terms.constant(arg)]
            elif column in bound or arg in registers:
                self._spec += [L.MODE_REGISTER, registers[arg]]
            elif arg in needed or args.count(arg) > 1:
                registers[arg] = len(registers)
                self._spec += [L.MODE_OUT, registers[arg]]
            else:
                self._spec += [L.MODE_ANY, 0]
        first = len(self._sources) // L.SOURCE_WORDS
        for source in sources:
            self._source(source, bound, exact=exact)
        pairs = len(args) == 2 and self._is_plain(spec, 2, first)
        once = once and not exact
        self._steps += [op, len(args), spec, first, len(sources), int(once), 0, 0, L.PAIRS if pairs else 0]

    def _source(self, source: TableSource, bound: tuple[int, ...], *, exact: bool) -> None:
        self._kept.append(source)
        table = source.view.table
        known = [column for column in bound if column < table.arity]
        is_row = len(known) == table.arity
        # Columns beyond those of a mask are compared row by row.
        mask = sum(1 << column for column in known if column < L.MASK_COLUMNS)
        if is_row and table.arity > L.MASK_COLUMNS:
            mask = L.WHOLE
        access, index = L.BY_SCAN, 0
        if source.read is RelationVersion.DELTA or not (mask or table.arity == 0):
            mask = 0
        elif is_row and table.is_marked and not exact:
            access = L.BY_BIT
        elif is_row:
            access = L.BY_ROW
            table.ensure_hash_set()
        else:
            index, mask = table.ensure_index(mask)
            access = L.BY_INDEX if mask else L.BY_SCAN
        entry = len(self._excluded)
        for view in source.excluded:
            if not view.table.is_marked:
                view.table.ensure_hash_set()
            self._excluded += [view.table.at, view.member_of]
        self._sources += [
            table.at,
            _RANGES[source.read],
            access,
            index,
            mask,
            source.view.member_of,
            entry,
            len(source.excluded),
        ]

    def _code(self, expression: Expression, registers: dict[Variable, int]) -> int:
        """Append the code of an expression; return its number of operations."""
        code = self._expressions.code(expression, registers)
        self._spec += code
        operations = len(code) // L.EXPRESSION_WORDS
        # An operation puts at most one value on the stack, and the left side of a comparison lies below.
        self._most_operations = max(self._most_operations, operations)
        return operations

    def _fuse(self, first: int, head: int, width: int) -> None:
        """Fuse the last atom with the head, if at most a `!=` of two plain operands comes between them."""
        last = len(self._steps) // L.STEP_WORDS - 1
        if last < first:
            return
        step = self._steps[last * L.STEP_WORDS : (last + 1) * L.STEP_WORDS]
        operands = [self._spec[head + 2 * n : head + 2 * n + 2] for n in range(width)]
        mark = L.FUSED
        if step[0] == L.OP_COMPARE and step[1] == step[3] == 1 and step[4] == L.UNEQUAL and last > first:
            mark = L.FUSED_UNEQUAL
            for code in (step[2], step[2] + L.EXPRESSION_WORDS):
                mode = L.MODE_REGISTER if self._spec[code] == L.X_REGISTER else L.MODE_TERM
                operands.append([mode, self._spec[code + 1]])
            last -= 1
            step = self._steps[last * L.STEP_WORDS : (last + 1) * L.STEP_WORDS]
        if step[0] == L.OP_ATOM and not step[5] and self._is_plain(step[2], step[1], step[3]):
            self._steps[last * L.STEP_WORDS + L.P_FUSED] = mark
            excluded = self._sources[step[3] * L.SOURCE_WORDS + L.S_EXCLUDED_COUNT :: L.SOURCE_WORDS]
            if step[1] == width == 2 and mark == L.FUSED and not any(excluded):
                self._steps[last * L.STEP_WORDS + L.P_PAIRS] = L.PAIRS_TO_PAIRS
            self._steps[last * L.STEP_WORDS + L.P_ORIGINS] = len(self._spec)
            for mode, operand in operands:
                self._spec += [self._column(step, operand) if mode == L.MODE_REGISTER else -1, mode, operand]

    def _column(self, step: list[int], register: int) -> int:
        """Return the column of an atom that is written to a register, or -1."""
        for column in range(step[1]):
            at = step[2] + column * L.SPEC_WORDS
            if self._spec[at : at + 2] == [L.MODE_OUT, register]:
                return column
        return -1

    def _is_plain(self, spec: int, arity: int, first: int) -> bool:
        """Whether the access of each source, from `first` on, checks all bound columns of an atom."""
        for source in range(first * L.SOURCE_WORDS, len(self._sources), L.SOURCE_WORDS):
            if self._sources[source + L.S_CLASS] != NO_CLASS and arity != 1:
                return False
            mask = self._sources[source + L.S_MASK]
            modes = [self._spec[spec + c * L.SPEC_WORDS] for c in range(arity) if not has_column(mask, c)]
            if any(mode not in {L.MODE_OUT, L.MODE_ANY} for mode in modes):
                return False
        return True


def _array(values: list[int]) -> NDArray[np.int64]:
    # Never empty, so that it has an address.
    return np.array(values or [0], np.int64)


def _is_class(source: TableSource) -> bool:
    return all(view.is_class for view in (source.view, *source.excluded))


def _joins(step: Step) -> bool:
    return isinstance(step, Match | Absent | AggregateRows)


def _needed(steps: Sequence[Step], head: Sequence[Argument]) -> set[Variable]:
    return {a for a in head if isinstance(a, Variable)}.union(*map(used_variables, steps))
