"""Checks a change, lets the engine evaluate it, and reports it.

Locks, the log of a store and the commit are left to `knowledge_base`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import Progress, RunsJobs
from zodiacedge.errors import Diagnostic, PackProblem, ZodiacError
from zodiacedge.kb.change import has_facts, plan_rule_delta
from zodiacedge.kb.report import ChangeReport, dropped_nodes
from zodiacedge.kb.time.clock import clock_after, ticked
from zodiacedge.kb.time.hidden import ShownNetChange
from zodiacedge.kb.time.retention import (
    NO_RETENTION,
    Moment,
    Retained,
    Retention,
    declares,
    may_declare,
    retained,
    retention_of,
)
from zodiacedge.kb.warnings import mistaken_constants, names_without_facts
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.checks import text_order
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.printer import abbreviated, format_rule
from zodiacedge.language.safety import resolve_query
from zodiacedge.packs.owners import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from zodiacedge.engine.api import FactDelta, Lookups, Settings, State, UncommittedState
    from zodiacedge.kb.change import Change, ChangeNote
    from zodiacedge.kb.rule_base import RuleBase
    from zodiacedge.language.ast import Predicate, Rule
    from zodiacedge.language.checks import Host
    from zodiacedge.packs.manifest import Check, Manifest
    from zodiacedge.packs.owners import PacksDelta

    Warn = Callable[[Sequence[Diagnostic]], object]

_COMPARING = "comparing facts with those that are there"


class CurrentVersion(NamedTuple):
    """The version that a change starts from."""

    version: int
    program: RuleBase
    state: State
    prefixes: Mapping[str, str]
    """Those that messages are written with."""
    declared: Mapping[str, str]
    """Those that changes have declared, which a change may redefine."""
    now: datetime | None = None
    """Its time, None before the first tick."""
    retention: Retention = NO_RETENTION


class EvaluatedChange(NamedTuple):
    """The result of a change: rules, fact delta, uncommitted state and report."""

    program: RuleBase
    fact_delta: FactDelta
    uncommitted: UncommittedState
    report: ChangeReport
    now: datetime | None
    """The time after the change."""
    retention: Retention | None
    """The retention after the change; None if it is to be read from the facts."""


def evaluate_change(
    current: CurrentVersion,
    change: Change,
    host: Host,
    settings: Settings,
    note: ChangeNote | None,
) -> EvaluatedChange:
    """Evaluate a change, or raise if it is refused; a dry run has no note.

    A dry run creates no version. Neither does a change without effect on rules and explicit facts, unless its
    note has something to keep. Diagnostics are written with the prefixes of the version and of the note.
    """
    declared = note.prefixes if note else {}
    prefixes = {**current.prefixes, **declared}
    redefined = tuple(_redefined(declared, current.declared))
    if redefined:
        change = replace(change, warnings=(*change.warnings, *redefined))
    if settings.warn:
        settings = replace(settings, warn=_abbreviating(settings.warn, prefixes))
    try:
        return _evaluated(current, change, host, settings, _Note(note, prefixes))
    except ZodiacError as problem:
        problem.diagnostics = tuple(abbreviated(finding, prefixes) for finding in problem.diagnostics)
        raise


class _Note(NamedTuple):
    # What the log keeps, None in a dry run; and the prefixes of the report.
    kept: ChangeNote | None
    prefixes: Mapping[str, str]


def _evaluated(
    current: CurrentVersion, change: Change, host: Host, settings: Settings, note: _Note
) -> EvaluatedChange:
    before = current.state
    if not _may_run_jobs(type(before)) or not isinstance(before, RunsJobs):
        return _maintained(current, change, host, settings, note)
    purpose = "dry run" if note.kept is None else f"change {current.version + 1}"
    if note.kept and note.kept.message:
        purpose += f" ({note.kept.message})"
    with before.watched_jobs(purpose) as jobs:
        evaluated = _maintained(current, change, host, settings, note)
    return evaluated._replace(report=replace(evaluated.report, jobs=tuple(jobs)))


@cache
def _may_run_jobs(kind: type[State]) -> bool:
    # A protocol is slow to compare with, for a change that takes a millisecond.
    return issubclass(kind, RunsJobs)


def _maintained(
    current: CurrentVersion, change: Change, host: Host, settings: Settings, given: _Note
) -> EvaluatedChange:
    note, prefixes = given
    start = time.perf_counter()
    version, program, before = current.version, current.program, current.state
    change = ticked(change, current.now)
    retention = current.retention
    if declares(change):
        retention = retention_of(before, settings, change)
    present = change.tick or current.now
    kept: Retained | None = None
    if present and not change.accepted and (retention.keeps or current.retention.stated):
        kept = retained(change, current.retention, retention, Moment(present, before, settings))
        change = kept.change
    facts = change.loaded, change.unloaded, change.add_facts, change.remove_facts
    if settings.progress and any(facts):
        # An engine may compute the delta lazily; `plan_rule_delta` asks for it.
        settings.progress(Progress.of_stage(_COMPARING))
    fact_delta = _fact_delta(change, before)
    settings.yield_point.yield_to_waiters()
    now = clock_after(fact_delta, change, (*change.loaded, *change.unloaded), current.now)
    delta = plan_rule_delta(program, change, host, fact_delta, before)
    bodies = [conjunct for rule in delta.rules_added for conjunct in rule.body]
    found = (
        *change.warnings,
        *delta.warnings,
        *mistaken_constants(bodies, fact_delta.holds),
        *names_without_facts(
            delta.rules_added,
            delta.program.defined,
            lambda predicate: has_facts(predicate, fact_delta),
            fact_delta.holds,
        ),
    )
    warnings = tuple(sorted(audible(found, change.add_rules), key=text_order)) if found else ()
    if settings.warn and warnings:
        # The evaluation may be what a warning is about: it may never end.
        settings.warn(warnings)
    uncommitted = before.maintain(delta.program.rules, delta.program.graph, fact_delta, settings)
    if delta.packs and change.checked and not change.accepted:
        check_packs(delta.packs, uncommitted.lookups(settings))
    rules_added = (*delta.rules_added, *(after for _, after in delta.relabelled))
    rules_removed = (*delta.rules_removed, *(before for before, _ in delta.relabelled))
    has_effect = bool(rules_added or rules_removed or fact_delta.added or fact_delta.removed or delta.packs)
    report = ChangeReport(
        version,
        version + (note is not None and (has_effect or note.is_kept)),
        rules_added,
        rules_removed,
        fact_delta.added,
        fact_delta.removed,
        ShownNetChange(uncommitted.net),
        (*dropped_nodes(delta.dropped, before), *uncommitted.runs),
        {_label(delta.program.rules[key]): d for key, d in uncommitted.dropped.items()},
        warnings,
        time.perf_counter() - start,
        prefixes,
        dry_run=note is None,
        known=partial(_predicates_of, delta.program),
        packs=moves(program.packs, delta.program.packs) if delta.packs else {},
        packs_delta=delta.packs,
    )
    if kept and note:
        kept.quarantine()
    known = None if may_declare(change) else retention
    return EvaluatedChange(delta.program, fact_delta, uncommitted, report, now, known)


def _predicates_of(program: RuleBase) -> frozenset[Predicate]:
    """Return the predicates of the heads and bodies of rules."""
    rules = program.rules.values()
    return frozenset(a.predicate for rule in rules for a in (rule.head, *body_atoms(rule.body)))


def check_packs(delta: PacksDelta, lookups: Lookups) -> None:
    """Raise if what packs that come demand of the facts does not hold."""
    manifests = [d.manifest for d in delta.packs.values() if d.manifest]
    failed = [
        Diagnostic(
            "P010",
            f"a check of the pack {manifest} fails: there must be {check}",
            "the pack demands it of what is in force with it; nothing was changed",
        )
        for manifest in manifests
        for check in failing(manifest, lookups)
    ]
    if failed:
        raise PackProblem(failed)


def failing(manifest: Manifest, lookups: Lookups) -> Iterator[Check]:
    """Yield the checks of a pack that do not hold."""
    for check in manifest.checks:
        rows, _ = lookups.prepare(resolve_query(check.parsed()), ())([()], 1)
        if bool(rows) != check.answers:
            yield check


def _abbreviating(warn: Warn | None, prefixes: Mapping[str, str]) -> Warn | None:
    """Return a function that tells warnings with prefixes, as the errors of a change have them."""
    if warn is None:
        return None
    return lambda found: warn([abbreviated(warning, prefixes) for warning in found])


def _redefined(prefixes: Mapping[str, str], declared: Mapping[str, str]) -> Iterator[Diagnostic]:
    for prefix, base in prefixes.items():
        if declared.get(prefix, base) != base:
            yield Diagnostic(
                "W019",
                f"the prefix {prefix}: now means {base}, and meant {declared[prefix]} before",
                "queries and later changes use the new meaning; choose another prefix to keep both",
                severity="warning",
            )


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
