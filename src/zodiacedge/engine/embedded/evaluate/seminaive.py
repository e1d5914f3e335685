"""The semi-naive fixpoint of one hyper-node: its segment, evaluated from scratch.

Each round evaluates a recursive rule once per own atom of its body, with the delta of the last round at this
atom, older facts at own atoms before it, and all facts at the others (F. Bancilhon: Naive Evaluation of
Recursively Defined Relations, 1986; I. Balbin, K. Ramamohanarao: A Generalization of the Differential
Approach to Recursive Query Evaluation, 1987). All rules run as one program of the rule machine, which returns
when a table needs room, when a host function must be computed, and at intervals for limits and progress.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from zodiacedge.engine.api import Dropped
from zodiacedge.engine.embedded.evaluate.exchange import THREADS, Exchange
from zodiacedge.engine.embedded.evaluate.merged_classes import MergedClasses
from zodiacedge.engine.embedded.evaluate.modules import UNEQUAL_SHAPES, Module, evaluate_composed
from zodiacedge.engine.embedded.evaluate.modules import evaluate as evaluate_module
from zodiacedge.engine.embedded.evaluate.two_threads import (
    OtherHalf,
    TwoThreads,
    has_two_cores,
    only_reads,
)
from zodiacedge.engine.embedded.expressions.aggregate import fold_rows
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import COMPILED
from zodiacedge.engine.embedded.machine.assemble import Assembly, Frame
from zodiacedge.engine.embedded.machine.execute import execute
from zodiacedge.engine.embedded.machine.sources import NodeReads
from zodiacedge.engine.embedded.storage.relation import TableView, in_pairs, stored_arguments
from zodiacedge.engine.embedded.storage.segment import Segment
from zodiacedge.engine.embedded.storage.table import Table
from zodiacedge.engine.semantics.errors import NoValue
from zodiacedge.engine.semantics.expressions import compare, evaluate
from zodiacedge.engine.yield_point import ALONE, YieldPoint
from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Rule, Variable, body_atoms
from zodiacedge.language.printer import format_argument, format_term
from zodiacedge.language.safety import analyse
from zodiacedge.language.unify import unifiable
from zodiacedge.plan.algebra import Match
from zodiacedge.plan.order import OWN_ROWS, arrange, expected, repeats
from zodiacedge.plan.variants import can_fail, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from zodiacedge.engine.embedded.storage.database import FactTables
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.registry import Registry
    from zodiacedge.plan.algebra import Step
    from zodiacedge.terms import Term

# The memory in bytes for a bit per pair of terms: at least, per row that the node reads, and at most.
_BITS_AT_LEAST = 256 * 1024
_BITS_PER_ROW = 4096
_MOST_BITS = 64 * 1024 * 1024
# Up to so many tables of an atom are kept distinct without a hash set of the target.
_FEW_TABLES = 2
# The rows from which two threads pay: of the first atom of a rule, and of all atoms of a fixpoint.
_ROWS_FOR_TWO = 20_000
_ROWS_FOR_HALVES = 4_000
# The rows of a round from which the second thread pays.
_ROWS_FOR_ROUND = 1_000


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The result of a node's evaluation."""

    segment: Segment
    rounds: int
    dropped: Mapping[str, Dropped]
    derivations: int
    module: str = ""


class NodeEvaluation:
    """The evaluation of one node."""

    def __init__(
        self,
        store: FactTables,
        rules: Mapping[str, Rule],
        registry: Registry,
        watch: Callable[[int, int], None],
        *,
        module: Module | None = None,
        starts: int | None = None,
        yield_point: YieldPoint = ALONE,
    ) -> None:
        """Take the node's rules by key.

        Args:
            store: The facts outside the node.
            rules: The rules.
            registry: The registered functions and aggregates.
            watch: Called at intervals with the round and the number of facts.
            module: The module of the rules, if its algorithm may be used.
            starts: The position in each body that a plan must start from; any position if None.
            yield_point: Lets waiting threads run at intervals.
        """
        self._yield_point = yield_point
        self._second: OtherHalf | None = None
        # If two threads evaluate the node in rounds: their facts, the number of this one, and its next round.
        self._exchange: tuple[Exchange, int] | None = None
        self._round = 0
        self._starts = starts
        self._constants_are_known = False
        self._store = store
        self._rules = rules
        self._registry = registry
        self._watch = watch
        self._module = module
        self._segment = Segment()
        self._rows: dict[int, Table] = {}
        self.derivations = 0
        self._errors: dict[str, tuple[int, str]] = {}
        self._aggregate_errors: dict[str, tuple[int, str]] = {}
        self._types_in_pairs = in_pairs(rule.head for rule in rules.values())
        self._read_from(store.outside)

    def evaluate(self) -> NodeResult:
        """Evaluate to the fixpoint."""
        module = self._module
        if module and self._suits(module) and self._evaluated_by(module):
            for table in self._segment.tables.values():
                table.trim()
            return NodeResult(self._segment, 1, {}, len(self._segment), module.shape.value)
        if not self._computes:
            self._encode_constants()
            self._read_from(MergedClasses(self._store.outside, len(self._store.dictionary)))
        two = has_two_cores()
        if two and self._divisible():
            rounds = self._run_in_two()
        elif two and self._is_long():
            rounds = self._run_long()
        else:
            rounds = self._run_alone()
        for table in self._segment.tables.values():
            table.unmark()
            table.trim()
        return NodeResult(self._segment, rounds, self.dropped(), self.derivations)

    def _read_from(self, outside: Callable[[Atom], Sequence[TableView]]) -> None:
        """Set where atoms read facts outside the node."""
        self._outside = outside
        self._rows_outside: int | None = None
        self._sizes = _Sizes(outside, tuple(dict.fromkeys(rule.head for rule in self._rules.values())))

    def _evaluated_by(self, module: Module) -> bool:
        """Evaluate a module; return False if its algorithm does not suit the facts."""
        rule = next(iter(self._rules.values()))
        if module.chains:
            targets = {rule.head.relation: self._target(rule) for rule in self._rules.values()}
            return evaluate_composed(module, self._store.outside, targets, self._look)
        evaluate_module(module, self._store.outside, self._target(rule), rule.head, self._look)
        return True

    def _divisible(self) -> bool:
        """Whether two threads may share the node: one rule, not recursive, that starts with a large scan."""
        if len(self._rules) > 1:
            return False
        (rule,) = self._rules.values()
        if not only_reads(rule):
            return False
        plans = list(self._plans(next(iter(self._rules))))
        if len(plans) != 1 or plans[0][0] is not None:
            return False
        steps = plans[0][1]
        first = steps[0] if steps else None
        if not isinstance(first, Match) or first.bound or len(steps) == 1:
            return False
        return sum(len(part.table) for part in self._outside(first.atom)) >= _ROWS_FOR_TWO

    def _run_alone(self) -> int:
        self.assemble(bits=True)
        return self.run()

    def _run_in_two(self) -> int:
        # The indexes are built before the second thread starts.
        self.assemble(bits=True, share=(0, 2))
        other, rounds = self._run_both(lambda other: other.assemble(bits=True, share=(1, 2)))
        for relation, table in self._segment.tables.items():
            rows = other.segment.tables[relation].rows
            if table.is_marked:
                table.insert_unmarked(rows)
            elif table.has_hash_set:
                table.insert(rows)
            else:
                table.append_distinct(rows)
            table.settle()
        return rounds

    def _is_long(self) -> bool:
        """Whether two threads may share the fixpoint, and it is expected to be long."""
        rules = self._rules.values()
        if not any(map(self._multiplies, rules)) or not all(map(only_reads, rules)):
            return False
        return self._rows_read() >= _ROWS_FOR_HALVES and not any(rule.aggregate for rule in rules)

    def _run_long(self) -> int:
        """Run in two threads, if an argument is handed down or a bitmap can say which facts are new."""
        rules = self._rules.values()
        if halves := TwoThreads.of(rules):
            return self._run_in_halves(halves)
        filled = [self._store.filled_by(rule.head, pairs=self._types_in_pairs) for rule in rules]
        if COMPILED and all(map(self._fits_bits, filled)):
            return self._run_in_rounds(filled)
        return self._run_alone()

    def _run_in_halves(self, halves: TwoThreads) -> int:
        outside = self._outside
        self._read_from(halves.reads(outside, 0))
        self.assemble(bits=True)

        def assemble(other: NodeEvaluation) -> None:
            other._read_from(halves.reads(outside, 1))
            other.assemble(bits=True)

        other, rounds = self._run_both(assemble)
        for relation, table in self._segment.tables.items():
            table.unmark()
            table.append_distinct(other.segment.tables[relation].rows)
        return rounds

    def _run_in_rounds(self, relations: Sequence[Relation]) -> int:
        exchange = Exchange(relations, len(self._store.dictionary), self._rows_read())
        second = OtherHalf(self._yield_point)

        def watch(rounds: int, _facts: int) -> None:
            self._watch(rounds, len(exchange))

        threads = (
            self._in_rounds(exchange, 0, watch, second),
            self._in_rounds(exchange, 1, second.watch, ALONE),
        )
        with ThreadPoolExecutor(1) as pool:

            def in_both(task: Callable[[int], None], rows: int) -> None:
                watch(exchange.rounds, 0)
                self._yield_point.yield_to_waiters()
                if rows >= _ROWS_FOR_ROUND:
                    second.run(pool, task)
                else:
                    for number in range(len(threads)):
                        task(number)

            try:
                exchange.run(lambda number: threads[number].run_round(), in_both)
            finally:
                second.stop()
        self.derivations = sum(thread.derivations for thread in threads)
        self._segment = exchange.result()
        return exchange.rounds

    def _in_rounds(
        self, exchange: Exchange, number: int, watch: Callable[[int, int], None], yield_point: YieldPoint
    ) -> NodeEvaluation:
        """Return the assembled evaluation of one of the threads."""
        other = NodeEvaluation(self._store, self._rules, self._registry, watch, yield_point=yield_point)
        other._read_from(self._outside)
        other._exchange = (exchange, number)
        other._segment = exchange.new(number)
        other.assemble(bits=True, share=(number, THREADS))
        return other

    def run_round(self) -> None:
        """Run the assembled program for one round of an exchange."""
        self._round = self._run(self._assembly, self._frame, (), self._round)

    def _run_both(self, assemble: Callable[[NodeEvaluation], None]) -> tuple[NodeEvaluation, int]:
        """Run the assembled program, and another evaluation of the same rules in a second thread."""
        second = OtherHalf(self._yield_point)
        self._yield_point = second
        self._second = second
        other = NodeEvaluation(self._store, self._rules, self._registry, second.watch)
        other._read_from(self._outside)

        def assemble_and_run() -> int:
            with second.working:
                assemble(other)
                return other.run()

        with ThreadPoolExecutor(1) as pool:
            half = pool.submit(assemble_and_run)
            try:
                rounds = self.run()
                rounds = max(rounds, second.wait_for(half))
                self.derivations += other.derivations
            finally:
                second.stop()
        return other, rounds

    def assemble(self, *, bits: bool, share: tuple[int, int] = (0, 1)) -> None:
        """Plan and assemble.

        Args:
            bits: Whether a target may detect duplicates by a bit per term or pair.
            share: Which share of its first atom's rows a plan reads, and the number of shares.
        """
        keys = list(self._rules)
        targets = [self._target(self._rules[key]) for key in keys]
        for key in keys:
            aggregate = self._rules[key].aggregate
            if aggregate:
                self._rows[id(aggregate)] = self._segment.aggregate_rows[key] = self.aggregate_rows(
                    key, aggregate
                )
        plans = [(n, delta, steps) for n, key in enumerate(keys) for delta, steps in self._plans(key)]
        if all(delta is not None for _, delta, _ in plans):
            plans = []
        distinct = len(plans) == 1 and self._gives_each_once(plans[0][2], self._rules[keys[plans[0][0]]].head)
        if not distinct and not self._exchange:
            self._prepare_targets(targets, bits=bits)
        alone = not targets[0].is_marked and not targets[0].has_hash_set
        self._assembly = Assembly(self._store, self._reads(), self._registry)
        for number, delta, steps in plans:
            rule = self._rules[keys[number]]
            # A delta is shared already.
            self._assembly.share = share if delta is None else (0, 1)
            self._assembly.add(
                steps,
                stored_arguments(rule.head, pairs=self._types_in_pairs),
                targets[number],
                later=delta is not None,
                rule=number,
                exact=can_fail(rule.body),
                distinct_rows=alone,
                products=delta is not None,
            )
        # Rows that are exchanged between two rounds become a delta only then.
        advanced = [] if self._exchange else list(dict.fromkeys(targets))
        self._frame = self._assembly.frame(advanced, len(keys))

    def run(self) -> int:
        """Run the assembled program to the fixpoint; return the number of rounds."""
        self._errors = dict(self._aggregate_errors)
        rounds = self._run(self._assembly, self._frame, list(self._segment.tables.values()))
        for number, key in enumerate(self._rules):
            self._record_errors(key, self._rules[key], self._assembly.errors(number))
        for table in self._segment.tables.values():
            table.settle()
        return rounds

    def reset(self) -> None:
        """Clear the result of the last run."""
        self._assembly.reset_errors()
        for table in self._segment.tables.values():
            table.clear()

    @property
    def segment(self) -> Segment:
        """The derived facts."""
        return self._segment

    def dropped(self) -> dict[str, Dropped]:
        """Return the bindings dropped by evaluation errors, by rule key."""
        return {key: Dropped(count, example) for key, (count, example) in self._errors.items()}

    def _look(self, facts: int) -> None:
        self._watch(1, facts)
        self._yield_point.yield_to_waiters()

    def _suits(self, module: Module) -> bool:
        parts = self._store.outside(module.step)
        if module.shape in UNEQUAL_SHAPES:
            # The module treats different terms as unequal, but 1 and 1.0 are equal.
            return not self._store.dictionary.may_be_equal([part.table.rows for part in parts])
        # Where members of the class are in a table of all classes, copying columns is not enough.
        width = len(stored_arguments(module.step))
        return all(part.table.arity == width for part in parts)

    def _target(self, rule: Rule) -> Table:
        return self._segment.table(self._store.filled_by(rule.head, pairs=self._types_in_pairs))

    def _plans(self, key: str) -> Iterator[tuple[int | None, tuple[Step, ...]]]:
        rule = self._rules[key]
        recursive = self._recursive(rule)
        without = [n for n, c in enumerate(rule.body) if isinstance(c, Atom) and not self._sizes.outside(c)]
        if not recursive.keys() >= set(without):
            # An atom without facts: the rule derives nothing.
            return
        wanted = needed(rule.body, rule.head.args)
        for delta in (None, *recursive) if not without else recursive:
            first = self._starts if delta is None else delta
            yield delta, arrange(rule.body, recursive, first, self._sizes, wanted)

    def _gives_each_once(self, steps: tuple[Step, ...], head: Atom) -> bool:
        """Whether a plan derives no head twice, from few tables whose common rows must be skipped."""
        if repeats(steps, head.args):
            return False
        tables = [len(self._outside(step.atom)) for step in steps if isinstance(step, Match)]
        return max(tables, default=0) <= _FEW_TABLES

    def _prepare_targets(self, targets: Sequence[Table], *, bits: bool) -> None:
        """Give each target the means to detect duplicates: a bit per term or pair, or a hash set."""
        if not self._constants_are_known:
            self._encode_constants()
        for target in targets:
            if bits and self._fits_bits(target):
                target.mark(len(self._store.dictionary))
            else:
                target.ensure_hash_set()

    def _fits_bits(self, target: Relation | Table) -> bool:
        """Whether there may be a bit for each term or pair of terms: all are known, and not too many."""
        if target.arity not in {1, 2} or self._computes:
            return False
        terms = len(self._store.dictionary)
        most = min(_MOST_BITS, _BITS_AT_LEAST + _BITS_PER_ROW * self._rows_read())
        return target.arity == 1 or terms * terms // 8 <= most

    def _rows_read(self) -> int:
        """Count the rows outside the node that its atoms read."""
        if self._rows_outside is None:
            atoms = (c for rule in self._rules.values() for c in rule.body if isinstance(c, Atom))
            self._rows_outside = sum(len(part.table) for atom in atoms for part in self._outside(atom))
        return self._rows_outside

    @cached_property
    def _computes(self) -> bool:
        """Whether a rule computes terms, which may be new."""
        return any(isinstance(c, Binding) for rule in self._rules.values() for c in rule.body)

    def _encode_constants(self) -> None:
        """Make the terms of the rules known: there is a bit for each known term."""
        for rule in self._rules.values():
            for atom in (rule.head, *body_atoms(rule.body)):
                for arg in atom.args:
                    if not isinstance(arg, Variable):
                        self._store.terms.constant(arg)
        self._constants_are_known = True

    def _reads(self) -> NodeReads:
        store, segment = self._store, self._segment

        def own(atom: Atom) -> Sequence[TableView]:
            if not self._sizes.is_own(atom):
                return ()
            return (
                self._exchange[0].known_views(store, atom) if self._exchange else store.inside(segment, atom)
            )

        def delta(atom: Atom) -> Sequence[TableView]:
            if not self._exchange or not self._sizes.is_own(atom):
                return own(atom)
            exchange, thread = self._exchange
            return exchange.delta_views(store, atom, thread)

        return NodeReads(self._outside, own, lambda aggregate: self._rows[id(aggregate)], delta)

    def _recursive(self, rule: Rule) -> dict[int, Atom]:
        atoms = ((position, c) for position, c in enumerate(rule.body) if isinstance(c, Atom))
        return {position: atom for position, atom in atoms if self._sizes.is_own(atom)}

    def _multiplies(self, rule: Rule) -> bool:
        """Whether a rule joins facts of the node with other facts, so that a round may derive many more."""
        atoms = sum(isinstance(conjunct, Atom) for conjunct in rule.body)
        columns = stored_arguments(rule.head, pairs=self._types_in_pairs)
        return atoms > 1 and len(columns) > 1 and bool(self._recursive(rule))

    def aggregate_rows(self, key: str, aggregate: Aggregate) -> Table:
        """Return the rows of a rule's aggregate: its groups and results."""
        arguments = aggregate.arguments
        bindings = Table(len(aggregate.groups) + len(arguments))
        everything = analyse(aggregate.body).bound
        assembly = Assembly(self._store, self._reads(), self._registry)
        steps = arrange(aggregate.body, (), None, self._sizes, everything)
        assembly.add(steps, (*aggregate.groups, *arguments), bindings, later=False, rule=0, exact=True)
        self._run(assembly, assembly.frame([], 1), [])
        self._record_errors(key, self._rules[key], assembly.errors(0))
        rows, count, example = fold_rows(self._store, aggregate, bindings.rows, self._registry)
        if count:
            self._add_errors(key, count, example)
        self._aggregate_errors = dict(self._errors)
        return Table.of(rows)

    def _run(self, assembly: Assembly, frame: Frame, own: Sequence[Table], first_round: int = 0) -> int:
        def watch(rounds: int) -> None:
            of_second = self._second.facts if self._second else 0
            self._watch(rounds, sum(len(table) for table in own) + of_second)
            self._yield_point.yield_to_waiters()

        rounds = execute(assembly, frame, self._registry, watch, first_round=first_round)
        self.derivations += int(frame.state[L.M_DERIVED])
        return rounds

    def _record_errors(self, key: str, rule: Rule, errors: tuple[int, Mapping[Variable, int]]) -> None:
        count, registers = errors
        if not count:
            return
        binding = {v: self._store.dictionary.decode(n) for v, n in registers.items() if n >= 0}
        self._add_errors(key, count, _example(rule, binding, self._registry))

    def _add_errors(self, key: str, count: int, example: str) -> None:
        before, first = self._errors.get(key, (0, example))
        self._errors[key] = (before + count, min(first, example))


class _Sizes:
    """The expected matches of the atoms of a node's rules, each looked up once.

    The facts that the node itself will derive are not known yet, and likely to be many.
    """

    def __init__(self, outside: Callable[[Atom], Sequence[TableView]], heads: tuple[Atom, ...]) -> None:
        """Take the tables outside the node, and the heads of its rules."""
        self._outside = outside
        self._heads = heads
        # By identity: the rules outlive the evaluation, and the hash of an atom takes as long as a lookup.
        self._rows: dict[int, int] = {}
        self._own: dict[int, bool] = {}

    def is_own(self, atom: Atom) -> bool:
        """Whether the node itself derives facts that match an atom of its rules."""
        own = self._own.get(id(atom))
        if own is None:
            own = self._own[id(atom)] = any(unifiable(head, atom) for head in self._heads)
        return own

    def outside(self, atom: Atom) -> int:
        """Return how many rows outside the node may match an atom of its rules."""
        rows = self._rows.get(id(atom))
        if rows is None:
            rows = self._rows[id(atom)] = sum(len(part.table) for part in self._outside(atom))
        return rows

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Return how many facts match an atom of the node's rules."""
        rows = self.outside(atom)
        return expected(max(rows, OWN_ROWS) if self.is_own(atom) else rows, atom, bound)


def _example(rule: Rule, binding: Mapping[Variable, Term], registry: Registry) -> str:
    shown = ", ".join(
        f"{format_argument(v)} = {format_term(t)}" for v, t in binding.items() if not v.anonymous
    )
    conjuncts = [*rule.body, *(rule.aggregate.body if rule.aggregate else ())]
    reason = "no value"
    for conjunct in conjuncts:
        try:
            if isinstance(conjunct, Binding):
                evaluate(conjunct.expression, binding, registry)
            elif isinstance(conjunct, Comparison):
                left = evaluate(conjunct.left, binding, registry)
                compare(left, conjunct.operator, evaluate(conjunct.right, binding, registry))
        except NoValue as problem:
            reason = str(problem)
            break
        except KeyError:
            continue
    return f"{reason} ({shown})" if shown else reason
