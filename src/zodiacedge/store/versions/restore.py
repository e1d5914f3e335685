"""Restores the program and the state of a commit: rules are parsed and checked, facts are loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from zodiacedge.engine.api import Dropped
from zodiacedge.engine.persistence import BadPartitionError, RestoreInfo
from zodiacedge.errors import StoreProblem, ZodiacError
from zodiacedge.kb.rule_base import RuleBase
from zodiacedge.kb.time.rule_forms import RuleForms
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import parse_program
from zodiacedge.packs.owners import packs_of
from zodiacedge.store.layout import short_hash
from zodiacedge.store.problems import damaged_table, not_reproduced
from zodiacedge.store.table.parquet_files import segment_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.engine.api import State
    from zodiacedge.engine.persistence import AnyPersistence, Partitions
    from zodiacedge.engine.registry import Registry
    from zodiacedge.errors import Diagnostic
    from zodiacedge.language.ast import Rule
    from zodiacedge.language.checks import Host
    from zodiacedge.packs.owners import Packs
    from zodiacedge.store.location.base import Location
    from zodiacedge.store.log.record import Entry
    from zodiacedge.store.table.commit_info import Snapshot

_UNREGISTERED = "C009"


def rules_of(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Parse the rules of a commit or a record, one per text."""
    return parse_program("\n".join(texts), "<store>").rules


def program_of(
    location: Location, snapshot: Snapshot, host: Host, *, by_rows: bool
) -> tuple[RuleBase, tuple[Diagnostic, ...]]:
    """Return the program of a commit, and its calls of unregistered functions and aggregates.

    A reader does not need these. Other errors in rules are raised. `by_rows` says whether the engine keeps
    windows.
    """
    try:
        rules = rules_of(snapshot.rules)
        subject = Subject(rules, host=host, accepted=True, times=lambda: snapshot.times)
        errors = [d for d in check(subject) if d.severity == "error"]
        missing = tuple(d for d in errors if d.code == _UNREGISTERED)
        if len(missing) < len(errors):
            raise StoreProblem(d for d in errors if d.code != _UNREGISTERED)
        forms = RuleForms(lambda: snapshot.times, by_rows=by_rows)
        resolved: dict[str, Rule] = {}
        for key, rule, hidden in map(forms.resolved, rules):
            resolved |= {key: rule, **hidden}
        program = RuleBase().changed(resolved, ())
        return replace(program, packs=packs_in(location, snapshot)), missing
    except ZodiacError as error:
        why = f"its rules are refused: {error.diagnostics[0].message}"
        raise not_reproduced(location, snapshot.version, why) from error


def packs_in(location: Location, snapshot: Snapshot) -> Packs:
    """Return the packs of a commit, or raise if it is malformed."""
    try:
        return packs_of(snapshot.packs)
    except ValueError as error:
        why = f"its packs are malformed: {error}"
        raise not_reproduced(location, snapshot.version, why) from error


def missing_calls(rules: Iterable[Rule], host: Host) -> tuple[Diagnostic, ...]:
    """Return a diagnostic for each call of an unregistered function or aggregate."""
    findings = check(Subject(tuple(rules), host=host, accepted=True))
    return tuple(d for d in findings if d.code == _UNREGISTERED)


def owners_of(program: RuleBase) -> dict[str, frozenset[str]]:
    """Map the name of each segment to its rules; the explicit facts have none."""
    nodes = [frozenset[str](), *(frozenset(node.rules) for node in program.graph.nodes.values())]
    return {segment_name(keys): keys for keys in nodes}


def graph_digest(program: RuleBase) -> str:
    """Hash the hyper-nodes of a program."""
    return short_hash(owners_of(program))


def state_of(
    location: Location,
    persistence: AnyPersistence,
    empty: State,
    commit: tuple[RuleBase, Snapshot, Partitions],
    registry: Registry,
) -> State:
    """Restore the state of a commit from its program, metadata and partitions."""
    program, snapshot, partitions = commit
    owners = owners_of(program)
    info = RestoreInfo(
        program.rules,
        program.graph,
        {owners[name]: taken for name, taken in snapshot.seconds.items() if name in owners},
        {key: Dropped(*dropped) for key, dropped in snapshot.dropped.items() if key in program.rules},
        registry,
    )
    try:
        state: State = persistence.restored(empty, partitions, info)
    except (BadPartitionError, pa.ArrowException) as error:
        raise damaged_table(location, f"holds a partition that cannot be read: {error}") from error
    except KeyError as error:
        raise damaged_table(location, f"holds a partition of rules that are not there: {error}") from error
    check_counts(location, snapshot, persistence.counts(state))
    return state


def check_counts(location: Location, recorded: Snapshot | Entry, counts: tuple[int, int]) -> None:
    """Raise if the numbers of explicit and derived facts differ from those of a commit or a log entry."""
    explicit, derived = counts
    if counts != (recorded.explicit, recorded.derived):
        why = f"{explicit:,} and {derived:,} facts instead of {recorded.explicit:,} and {recorded.derived:,}"
        raise not_reproduced(location, recorded.version, why)
