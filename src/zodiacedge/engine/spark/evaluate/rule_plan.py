"""Rule bodies as plans on DataFrames.

The steps of a plan (`plan.algebra`) become joins, semi-joins and anti-joins of frames of fingerprints, which
Catalyst may optimise further. Comparisons, computed values and atoms negated on computed values are evaluated
by the embedded kernels (`expressions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.dataframes import names
from zodiacedge.language.ast import Aggregate, Atom, Binding, Comparison, Negation, Variable, variables
from zodiacedge.language.safety import analyse
from zodiacedge.plan.algebra import Absent, AggregateRows, Match
from zodiacedge.plan.order import arrange, expected
from zodiacedge.plan.variants import can_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.language.ast import Argument, Conjunct
    from zodiacedge.terms import Term

_DUMMY = "dummy"


@dataclass(frozen=True)
class Sources:
    """The rows that the atoms of a body read."""

    session: SparkSession
    keys: Mapping[Term, int]
    """The fingerprints of the terms of rules."""
    atom: Callable[[Atom], DataFrame]
    """The rows that a positive atom reads."""
    absent: Callable[[Atom], DataFrame]
    """The rows that a negated atom reads."""
    size: Callable[[Atom], int]
    """The estimated number of rows that an atom reads."""
    aggregate: Callable[[Aggregate], DataFrame]
    """The rows of an aggregate."""

    def matches(self, atom: Atom, bound: tuple[int, ...]) -> float:
        """Estimate the number of rows that match an atom."""
        return expected(self.size(atom), atom, bound)


@dataclass(frozen=True)
class Bindings:
    """The result of a body's joins: a frame with a column per variable, and the remaining conjuncts."""

    frame: DataFrame
    columns: tuple[Variable, ...]
    left: tuple[Conjunct, ...]


def column(variable: Variable, order: Sequence[Variable]) -> str:
    """Return the name of a variable's column."""
    return f"v{order.index(variable)}"


def left_over(body: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """Return the conjuncts of a body that use values, and the atoms negated on computed values."""
    computed = {c.variable for c in body if isinstance(c, Binding)}
    return tuple(
        c
        for c in body
        if isinstance(c, Comparison | Binding)
        or (isinstance(c, Negation) and not computed.isdisjoint(variables(c)))
    )


def needed_columns(body: tuple[Conjunct, ...], head: Collection[Argument]) -> frozenset[Variable]:
    """Return the variables that are needed after the joins of a body; all if evaluation errors count."""
    left = left_over(body)
    if can_fail(body):
        return analyse(body).bound
    return frozenset(a for a in head if isinstance(a, Variable)).union(*(variables(c) for c in left))


def bindings(
    body: tuple[Conjunct, ...],
    head: Collection[Argument],
    sources: Sources,
    delta: tuple[int, DataFrame] | None = None,
) -> Bindings:
    """Join the atoms of a body.

    Args:
        body: The conjuncts, resolved.
        head: The arguments of the head.
        sources: The rows that atoms read.
        delta: The position of an atom or an aggregate, and the rows that it matches instead of those it
            reads. A negated atom keeps only bindings that match these rows, and is evaluated as well.
    """
    left = left_over(body)
    wanted = needed_columns(body, head)
    computed = {c.variable for c in left if isinstance(c, Binding)}
    order = order_of(body)
    first = delta[0] if delta is not None and isinstance(body[delta[0]], Atom) else None
    plan = _Plan(sources, order, delta)
    for step in arrange(body, (), first, sources, wanted):
        if body[step.position] in left:
            continue
        match step:
            case Match(atom=atom, position=position):
                plan.match(atom, position)
            case AggregateRows(position=position):
                plan.join(plan.delta_at(position) or sources.aggregate(step.aggregate), step.columns)
            case Absent(atom=atom, position=position):
                plan.anti_join(atom, position)
            case _:
                raise AssertionError(step)
    kept = tuple(v for v in order if v in wanted and v not in computed and v in plan.bound)
    return Bindings(plan.selected(kept), kept, left)


def order_of(body: Sequence[Conjunct]) -> tuple[Variable, ...]:
    """Return the variables of a body in column order; of an aggregate, its groups and results."""
    return tuple(dict.fromkeys(v for c in body for v in _exported(c)))


def _exported(conjunct: Conjunct) -> list[Variable]:
    if isinstance(conjunct, Aggregate):
        return [*conjunct.groups, *(fold.target for fold in conjunct.folds)]
    return list(variables(conjunct))


class _Plan:
    """A frame of bindings under construction."""

    def __init__(
        self, sources: Sources, order: tuple[Variable, ...], delta: tuple[int, DataFrame] | None
    ) -> None:
        self._sources = sources
        self._order = order
        self._delta = delta
        self._frame: DataFrame | None = None
        self.bound: set[Variable] = set()

    def match(self, atom: Atom, position: int) -> None:
        self.join(self.delta_at(position) or self._sources.atom(atom), atom.args)

    def delta_at(self, position: int) -> DataFrame | None:
        """Return the delta, if it is read at this position."""
        return self._delta[1] if self._delta is not None and self._delta[0] == position else None

    def join(self, rows: DataFrame, args: Sequence[Argument]) -> None:
        frame, matched = self._matching(rows, args)
        if self._frame is None and matched:
            self._frame = frame
        elif not matched:
            self._frame = self._started().crossJoin(frame.limit(1)).drop(_DUMMY + "_")
        else:
            shared = [column(v, self._order) for v in matched if v in self.bound]
            left = self._started()
            self._frame = left.join(frame, shared) if shared else left.crossJoin(frame)
        self.bound.update(matched)

    def anti_join(self, atom: Atom, position: int) -> None:
        delta = self.delta_at(position)
        if delta is not None:
            self._filter_by(delta, atom, "left_semi")
        self._filter_by(self._sources.absent(atom), atom, "left_anti")

    def _filter_by(self, rows: DataFrame, atom: Atom, how: str) -> None:
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        frame, matched = self._matching(rows, atom.args)
        shared = [column(v, self._order) for v in matched if v in self.bound]
        if shared:
            self._frame = self._started().join(frame.select(*shared), shared, how)
        else:
            self._frame = self._started().join(frame.limit(1), functions.lit(True), how)  # noqa: FBT003

    def selected(self, kept: Sequence[Variable]) -> DataFrame:
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        frame = self._started()
        if not kept:
            return frame.select(functions.lit(0).cast("long").alias(_DUMMY))
        return frame.select(*(column(v, self._order) for v in kept))

    def _started(self) -> DataFrame:
        if self._frame is None:
            self._frame = self._sources.session.range(1).withColumnRenamed("id", _DUMMY)
        return self._frame

    def _matching(self, rows: DataFrame, args: Sequence[Argument]) -> tuple[DataFrame, list[Variable]]:
        """Return the rows that match arguments, with a column per variable."""
        from pyspark.sql import functions  # noqa: PLC0415 - heavy

        first: dict[Variable, str] = {}
        for name, arg in zip(names(len(args)), args, strict=True):
            if not isinstance(arg, Variable):
                rows = rows.where(functions.col(name) == self._sources.keys[arg])
            elif arg in first:
                rows = rows.where(functions.col(name) == functions.col(first[arg]))
            else:
                first[arg] = name
        if not first:
            return rows.select(functions.lit(0).alias(_DUMMY + "_")), []
        return rows.select(
            *(functions.col(name).alias(column(v, self._order)) for v, name in first.items())
        ), list(first)
