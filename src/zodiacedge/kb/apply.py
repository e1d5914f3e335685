"""A change worked out: what is asked for, checked, evaluated by the engine, and told in a report.

Nothing is in force yet. Who may ask for it, where it is written down and when it is put in force are left to
`knowledge`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import Progress
from zodiacedge.kb.change import plan_rule_delta
from zodiacedge.kb.report import ChangeReport, dropped_nodes
from zodiacedge.kb.warnings import mistaken_constants
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from zodiacedge.engine.api import FactDelta, Settings, State, UncommittedState
    from zodiacedge.kb.change import Change
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
    """What a change comes to."""

    program: RuleBase
    effect: FactDelta
    attempt: UncommittedState
    report: ChangeReport


def evaluate_change(
    there: CurrentVersion, change: Change, host: Host, settings: Settings, *, dry: bool
) -> EvaluatedChange:
    """Work a change out, or raise where it is refused; the version of a dry run stays as it is."""
    start = time.perf_counter()
    version, program, before = there
    facts = change.loaded, change.unloaded, change.add_facts, change.remove_facts
    if settings.progress and any(facts):
        # An engine may put the work off until somebody asks what came of it: `plan_rule_delta` does.
        settings.progress(Progress(0, len(program.graph.nodes), (), 0, 0, _COMPARING))
    effect = _effect(change, before)
    settings.turn.yield_to_waiters()
    prepared = plan_rule_delta(program, change, host, effect, before)
    attempt = before.attempt(prepared.program.rules, prepared.program.graph, effect, settings)
    bodies = [conjunct for rule in prepared.rules_added for conjunct in rule.body]
    warnings = (*prepared.warnings, *mistaken_constants(bodies, effect.holds))
    report = ChangeReport(
        version,
        version + (not dry),
        prepared.rules_added,
        prepared.rules_removed,
        effect.added,
        effect.removed,
        attempt.net,
        (*dropped_nodes(prepared.dropped, before), *attempt.runs),
        {_shown(prepared.program.rules[key]): d for key, d in attempt.dropped.items()},
        warnings,
        time.perf_counter() - start,
    )
    return EvaluatedChange(prepared.program, effect, attempt, report)


def _effect(change: Change, state: State) -> FactDelta:
    """Return what a change comes to on the explicit facts."""
    add, remove = state.batch(), state.batch()
    for batch in change.loaded:
        add.merge(batch)
    for batch in change.unloaded:
        remove.merge(batch)
    add.add(change.add_facts)
    remove.add(change.remove_facts)
    return state.effective_delta(add, remove)


def _shown(rule: Rule) -> str:
    return rule.label or format_rule(rule)
