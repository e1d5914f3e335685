"""Plans and measured plans as text and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.language.printer import format_atom, format_conjunct, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.plan.algebra import Absent, AggregateRows, Let, Match, RelationVersion, Step, Test
from zodiacedge.plan.measurement import measured_steps
from zodiacedge.plan.order import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from zodiacedge.plan.algebra import Plan
    from zodiacedge.plan.measurement import MeasuredStep, Measurement

_COLUMNS = ("estimated", "actual", "rows", "seconds")
_WIDTH = 10
_INSIDE = "inside the aggregate"


def to_text(plans: Iterable[Plan], prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return plans, one block each: the rule, where the delta enters, and the steps in order."""
    lines: list[str] = []
    rule = None
    for plan in plans:
        if plan.rule != rule:
            lines.append(format_rule(plan.rule, prefixes))
        rule = plan.rule
        lines.append(f"  {_entry(plan)}")
        for number, step in enumerate(plan.steps, 1):
            lines.append(f"    {number}. {_step(step, prefixes, _expected(step))}")
            # The body of the aggregate is evaluated as a whole, whatever changes.
            if isinstance(step, AggregateRows) and plan.delta is None:
                lines.append(f"       {_INSIDE}")
                lines += [
                    f"         {n}. {_step(inner, prefixes, _expected(inner))}"
                    for n, inner in enumerate(plan.inner, 1)
                ]
    return "\n".join(lines)


def to_dicts(plans: Iterable[Plan]) -> list[dict[str, object]]:
    """Return plans as plain values for JSON, with IRIs in full."""
    return [
        {
            "rule": plan.rule.label or format_rule(plan.rule),
            "delta": plan.delta,
            "steps": _steps(plan.steps),
            "aggregate": _steps(plan.inner),
        }
        for plan in plans
    ]


def measured_text(measurement: Measurement, prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return a measured plan: each step with its estimate and with what happened."""
    plan = measurement.plan
    rows: list[tuple[str, MeasuredStep | None]] = []
    for number, step in enumerate(measured_steps(plan.steps, measurement.steps), 1):
        rows.append((f"    {number}. {_step(step.step, prefixes)}", step))
        if isinstance(step.step, AggregateRows):
            rows.append((f"       {_INSIDE}", None))
            rows += [
                (f"         {n}. {_step(inner.step, prefixes)}", inner)
                for n, inner in enumerate(measured_steps(plan.inner, measurement.inner), 1)
            ]
    wide = max([len(text) for text, _ in rows] + [len("  as a whole")])
    heads = "".join(f"{name:>{_WIDTH + 2}}" for name in _COLUMNS)
    lines = [format_rule(plan.rule, prefixes), f"  {'as a whole':{wide - 2}}{heads}"]
    for text, measured in rows:
        cells = "".join(f"{cell:>{_WIDTH + 2}}" for cell in _cells(measured)) if measured else ""
        lines.append(f"{text:{wide}}{cells}{_verdict(measured)}".rstrip())
    derived = f"{counted(measurement.rows, 'row')}, {counted(measurement.facts, 'fact')}"
    return "\n".join([*lines, f"  {derived}, {measurement.seconds:.4f} s"])


def measured_dict(measurement: Measurement) -> dict[str, object]:
    """Return a measured plan as plain values for JSON, with IRIs in full."""
    plan = measurement.plan
    return {
        "rule": plan.rule.label or format_rule(plan.rule),
        "estimate": measurement.estimate,
        "rows": measurement.rows,
        "facts": measurement.facts,
        "seconds": measurement.seconds,
        "steps": _measured(measured_steps(plan.steps, measurement.steps)),
        "aggregate": _measured(measured_steps(plan.inner, measurement.inner)),
    }


def off_estimates(
    measurements: Iterable[Measurement], prefixes: Mapping[str, str] = DEFAULT_PREFIXES
) -> list[str]:
    """Return a line for each estimate that is off by an order of magnitude."""
    lines = []
    for measurement in measurements:
        plan = measurement.plan
        name = plan.rule.label or format_rule(plan.rule, prefixes)
        for where, steps, counts in (
            ("step", plan.steps, measurement.steps),
            (f"{_INSIDE}, step", plan.inner, measurement.inner),
        ):
            lines += [
                f"{name}, {where} {number}: estimated {_number(measured.estimate)} each, "
                f"actual {_number(measured.actual)}"
                for number, measured in enumerate(measured_steps(steps, counts), 1)
                if measured.is_off
            ]
    return lines


def _steps(steps: Iterable[Step]) -> list[dict[str, object]]:
    return [
        {"place": step.position, "step": _step(step, DEFAULT_PREFIXES, _expected(step))} for step in steps
    ]


def _measured(steps: Iterable[MeasuredStep]) -> list[dict[str, object]]:
    return [
        {
            "place": measured.step.position,
            "step": _step(measured.step, DEFAULT_PREFIXES),
            "estimate": measured.estimate,
            "actual": measured.actual,
            "rows": measured.count.rows,
            "seconds": measured.count.seconds,
            "off": measured.is_off,
        }
        for measured in steps
    ]


def _cells(measured: MeasuredStep) -> Sequence[str]:
    rows, seconds = measured.count
    # A match without an estimate could have one, other steps could not.
    is_unknown = isinstance(measured.step, Match) and measured.estimate is None
    estimate = "?" if is_unknown else _number(measured.estimate)
    return estimate, _number(measured.actual), f"{rows:,}", f"{seconds:.4f}"


def _verdict(measured: MeasuredStep | None) -> str:
    if measured is None or not measured.is_off:
        return ""
    if measured.factor > 1:
        return f"   {measured.factor:,.0f} times as many"
    return f"   {1 / measured.factor:,.0f} times too many expected"


def _number(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:,.2f}"


def _entry(plan: Plan) -> str:
    if plan.delta is None:
        return "as a whole"
    return f"when conjunct {plan.delta + 1} changes"


def _step(step: Step, prefixes: Mapping[str, str], expected: str = "") -> str:
    match step:
        case Match(atom=atom, read=read, bound=bound, once=once):
            version = "" if read is RelationVersion.NEW else f" {read.value}"
            how = _access(*columns_of(atom, bound))
            once_only = ", first match only" if once else ""
            return f"match{version} {format_atom(atom, prefixes)} by {how}{expected}{once_only}"
        case AggregateRows(bound=bound):
            return f"match the aggregate's rows by {_access(len(step.columns), len(bound))}"
        case Absent(atom=atom, bound=bound):
            return f"no {format_atom(atom, prefixes)} by {_access(*columns_of(atom, bound))}"
        case Test(comparison=comparison):
            return f"test {format_conjunct(comparison, prefixes)}"
        case Let(binding=binding):
            return f"bind {format_conjunct(binding, prefixes)}"


def _expected(step: Step) -> str:
    if isinstance(step, Match) and step.read is not RelationVersion.DELTA:
        return f", about {'?' if step.estimate is None else format(step.estimate, ',.0f')} each"
    return ""


def _access(arity: int, bound: int) -> str:
    if bound == arity:
        return "membership"
    return "index" if bound else "scan"
