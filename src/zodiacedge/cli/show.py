"""Prints what commands have in common: counts, rows of queries, net changes, skipped lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.errors import counted
from zodiacedge.language.printer import format_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.io import LoadReport
    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Rule
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

PREDICATE_COLUMNS = ("predicate", "explicit", "derived")


def counts(kb: StoredKnowledgeBase) -> dict[str, object]:
    """Return the numbers of facts in the JSON format of all commands."""
    derived = kb.derived()
    return {
        "version": kb.version,
        "explicit": sum(kb.explicit_counts().values()),
        "derived": derived,
        "derived_total": sum(derived.values()),
        "hyper_nodes": len(kb.graph()),
    }


def show_counts(console: Console, kb: StoredKnowledgeBase) -> None:
    """Print the numbers of rules and facts."""
    explicit, derived = sum(kb.explicit_counts().values()), sum(kb.derived().values())
    console.text(
        f"version {kb.version}: {counted(len(kb.rules), 'rule')}, {counted(explicit, 'explicit fact')}, "
        f"{counted(derived, 'derived fact')}"
    )


def predicate_rows(kb: KnowledgeBase) -> list[tuple[str, str, str]]:
    """Return how many explicit and derived facts each predicate has, as texts for a table."""
    explicit, derived = kb.explicit_counts(prefixed=True), kb.derived(prefixed=True)
    names = sorted({*explicit, *derived})
    return [(name, f"{explicit.get(name, 0):,}", f"{derived.get(name, 0):,}") for name in names]


def show_bad_lines(console: Console, loads: Sequence[LoadReport]) -> None:
    """Print the lines of files that were skipped."""
    for load in loads:
        if load.bad:
            console.note(f"{counted(load.bad, 'bad line')} skipped:")
            for bad in load.bad_lines:
                console.note(f"  {bad}")
            if load.bad > len(load.bad_lines):
                console.note(f"  … and {load.bad - len(load.bad_lines):,} more")


def show_dropped(console: Console, report: ChangeReport) -> None:
    """Print the bindings that evaluation errors dropped."""
    for rule, dropped in report.dropped.items():
        console.note(f"rule {rule} dropped {counted(dropped.count, 'binding')}: {dropped.example}")


def show_problems(console: Console, answers: Answers) -> None:
    """Print the warnings of a query, and the bindings that evaluation errors dropped, with its prefixes."""
    with console.prefixed(answers.prefixes):
        console.findings(answers.warnings)
        if answers.dropped:
            console.note(f"dropped {counted(answers.dropped.count, 'binding')}: {answers.dropped.example}")


def show_answers(console: Console, answers: Answers) -> None:
    """Print the rows of a query as a table, or yes or no."""
    if not answers.columns:
        console.text("yes" if answers else "no")
    else:
        console.table(answers.columns, answers.texts())
        console.text(counted(len(answers), "row"))


def show_net_change(
    console: Console,
    rules: tuple[Sequence[Rule], Sequence[Rule]],
    counts: tuple[Mapping[str, int], Mapping[str, int]],
) -> None:
    """Print rules added and removed, and how many facts of each predicate were inserted and deleted."""
    for sign, moved in zip("+-", rules, strict=True):
        for rule in moved:
            console.text(f"{sign} {format_rule(rule)}")
    inserted, deleted = counts
    names = sorted({*inserted, *deleted})
    if names:
        rows = [(name, f"+{inserted.get(name, 0):,}", f"-{deleted.get(name, 0):,}") for name in names]
        console.table(("predicate", "inserted", "deleted"), rows)
    else:
        console.text("no fact was inserted or deleted")


def show_facts_of(console: Console, sign: str, facts: Sequence[str], most: int) -> None:
    """Print inserted or deleted facts, up to `most`."""
    for fact in facts[:most]:
        console.text(f"{sign} {fact}")
    if most and len(facts) > most:
        console.text(f"{sign} … and {len(facts) - most:,} more")


def refuse_binary_on_a_terminal(form: str) -> None:
    """Raise if binary output would go to a terminal."""
    if sys.stdout.isatty():
        raise click.UsageError(f"--format {form} writes bytes: send them to a file with > or a pipe.")
