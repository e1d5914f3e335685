"""Checks a change, lets the engine evaluate it, and reports it.

Locks, the log of a store and the commit are left to `knowledge_base`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import Progress
from zodiacedge.kb.change import plan_rule_delta
from zodiacedge.kb.report import ChangeReport, dropped_nodes
from zodiacedge.kb.warnings import mistaken_constants
from zodiacedge.language.checks import text_order
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from zodiacedge.engine.api import FactDelta, Settings, State, UncommittedState
    from zodiacedge.kb.change import Change, ChangeNote
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.ast import Rule
    from zodiacedge.language.checks import Host

_COMPARING = "comparing facts with those that are there"


class CurrentVersion(NamedTuple):
    """The version that a change starts from."""

    version: int
    program: RuleBase
    state: State


class EvaluatedChange(NamedTuple):
    """The result of a change: rules, fact delta, uncommitted state and report."""

    program: RuleBase
    fact_delta: FactDelta
    uncommitted: UncommittedState
    report: ChangeReport


def evaluate_change(
    current: CurrentVersion,
    change: Change,
    host: Host,
    settings: Settings,
    note: ChangeNote | None,
) -> EvaluatedChange:
    """Evaluate a change, or raise if it is refused; a dry run has no note.

    A dry run creates no version. Neither does a change without effect on rules and explicit facts, unless its
    note has something to keep.
    """
    start = time.perf_counter()
    version, program, before = current
    facts = change.loaded, change.unloaded, change.add_facts, change.remove_facts
    if settings.progress and any(facts):
        # An engine may compute the delta lazily; `plan_rule_delta` asks for it.
        settings.progress(Progress.of_stage(_COMPARING))
    fact_delta = _fact_delta(change, before)
    settings.yield_point.yield_to_waiters()
    delta = plan_rule_delta(program, change, host, fact_delta, before)
    uncommitted = before.maintain(delta.program.rules, delta.program.graph, fact_delta, settings)
    bodies = [conjunct for rule in delta.rules_added for conjunct in rule.body]
    warnings = (*change.warnings, *delta.warnings, *mistaken_constants(bodies, fact_delta.holds))
    has_effect = bool(delta.rules_added or delta.rules_removed or fact_delta.added or fact_delta.removed)
    report = ChangeReport(
        version,
        version + (note is not None and (has_effect or note.is_kept)),
        delta.rules_added,
        delta.rules_removed,
        fact_delta.added,
        fact_delta.removed,
        uncommitted.net,
        (*dropped_nodes(delta.dropped, before), *uncommitted.runs),
        {_label(delta.program.rules[key]): d for key, d in uncommitted.dropped.items()},
        tuple(sorted(audible(warnings, change.add_rules), key=text_order)),
        time.perf_counter() - start,
        dry_run=note is None,
    )
    return EvaluatedChange(delta.program, fact_delta, uncommitted, report)


def _fact_delta(change: Change, state: State) -> FactDelta:
    """Return the effective delta of a change on the explicit facts."""
    add, remove = state.batch(), state.batch()
    for batch in change.loaded:
        add.merge(batch)
    for batch in change.unloaded:
        remove.merge(batch)
    add.add(change.add_facts)
    remove.add(change.remove_facts)
    return state.effective_delta(add, remove)


def _label(rule: Rule) -> str:
    return rule.label or format_rule(rule)
