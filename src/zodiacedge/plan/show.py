"""Plans as text and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.printer import format_atom, format_conjunct, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.plan.algebra import Absent, AggregateRows, Let, Match, RelationVersion, Step, Test
from zodiacedge.plan.order import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.plan.algebra import Plan


def to_text(plans: Iterable[Plan], prefixes: Mapping[str, str] = DEFAULT_PREFIXES) -> str:
    """Return plans, one block each: the rule, where the delta enters, and the steps in order."""
    blocks: list[str] = []
    rule = None
    for plan in plans:
        lines = [] if plan.rule == rule else [format_rule(plan.rule, prefixes)]
        rule = plan.rule
        lines.append(f"  {_entry(plan)}")
        lines += [f"    {number}. {_step(step, prefixes)}" for number, step in enumerate(plan.steps, 1)]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def to_dicts(
    plans: Iterable[Plan], prefixes: Mapping[str, str] = DEFAULT_PREFIXES
) -> list[dict[str, object]]:
    """Return plans as plain values for JSON."""
    return [
        {
            "rule": plan.rule.label or format_rule(plan.rule, prefixes),
            "delta": plan.delta,
            "steps": [{"place": step.position, "step": _step(step, prefixes)} for step in plan.steps],
        }
        for plan in plans
    ]


def _entry(plan: Plan) -> str:
    if plan.delta is None:
        return "as a whole"
    return f"when conjunct {plan.delta + 1} changes"


def _step(step: Step, prefixes: Mapping[str, str]) -> str:
    match step:
        case Match(atom=atom, read=read, bound=bound, once=once, estimate=estimate):
            version = "" if read is RelationVersion.NEW else f" {read.value}"
            how = _access(*columns_of(atom, bound))
            once_only = ", first match only" if once else ""
            expected = "" if read is RelationVersion.DELTA else f", about {estimate:,.0f} each"
            return f"match{version} {format_atom(atom, prefixes)} by {how}{expected}{once_only}"
        case AggregateRows(bound=bound):
            return f"match the aggregate's rows by {_access(len(step.columns), len(bound))}"
        case Absent(atom=atom, bound=bound):
            return f"no {format_atom(atom, prefixes)} by {_access(*columns_of(atom, bound))}"
        case Test(comparison=comparison):
            return f"test {format_conjunct(comparison, prefixes)}"
        case Let(binding=binding):
            return f"bind {format_conjunct(binding, prefixes)}"


def _access(arity: int, bound: int) -> str:
    if bound == arity:
        return "membership"
    return "index" if bound else "scan"
