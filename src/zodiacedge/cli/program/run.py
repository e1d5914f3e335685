"""`zodiac run`: load, materialise, print counts, play changes, answer queries, export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.explain.questions import (
    answered,
    check_questions,
    explanations_document,
    question_options,
    show_texts,
)
from zodiacedge.cli.open_kb import fill, in_memory, loaded_tables
from zodiacedge.cli.options import (
    FILE,
    LOCAL_FILE,
    DataOptions,
    EngineOptions,
    all_engines_options,
    data_options,
    files_options,
    ignore_option,
    limit_option,
    limit_options,
)
from zodiacedge.cli.output import check_folder, export, export_document, json_rows
from zodiacedge.cli.query_texts import queries_options
from zodiacedge.cli.rule_files import sound_rules
from zodiacedge.cli.sessions.play import play, read_sessions
from zodiacedge.cli.show import show_answers, show_bad_lines, show_dropped, show_problems
from zodiacedge.errors import CheckProblem, SyntaxProblem, counted
from zodiacedge.kb.query import checked_query
from zodiacedge.kb.warnings import unread_relations
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.checks import Host
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.rule_files import TextFile
    from zodiacedge.engine.limits import Limits
    from zodiacedge.errors import Diagnostic
    from zodiacedge.io import LoadReport
    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.query import CheckedQuery
    from zodiacedge.kb.report import ChangeReport


@click.command("run")
@click.argument("rules", nargs=-1, required=True, type=FILE, metavar="RULES...")
@data_options
@all_engines_options
@limit_option
@click.option(
    "--apply",
    "sessions",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Changes to play afterwards: session files, folders, globs.",
)
@click.option("--out", type=LOCAL_FILE, metavar="DIR", help="Export: one file per predicate that has a rule.")
@files_options
@limit_options
@common
@ignore_option
@queries_options
@question_options
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    rules: tuple[str, ...],
    data: DataOptions,
    on: EngineOptions,
    queries: tuple[TextFile, ...],
    questions: tuple[tuple[bool, str], ...],
    limit: int | None,
    sessions: tuple[str, ...],
    out: str | None,
    form: str | None,
    what: str | None,
    limits: Limits,
) -> None:
    r"""Load rules and facts, materialise, and show the results.

    RULES are files, folders or globs; - is standard input. The table shows derived facts per predicate. The
    changes of a session are committed one by one, each with its report; queries and the export use the final
    version. The exit code is 1 if a change is refused or differs from what its session expects.

    Everything is in memory: `zodiac init` creates a durable store of rules and facts, and `zodiac apply` and
    `zodiac query` work on it.

    \b
    Example:
      zodiac run farm.rules --facts readings.csv --query '?- alarm(T) .'
      zodiac run rs2.rules --facts ds2.nt --json
      zodiac run farm.rules --facts readings.csv --apply night.session
      zodiac run farm.rules --facts readings.csv --explain 'alarm(wt1)' --why-not 'alarm(wt2)'
    """
    if not out and (form or what):
        raise click.UsageError("--format and --what describe an export: add --out DIR.")
    checked = sound_rules(rules)
    prefixes = dict(checked.program.prefixes)
    console.prefixes = {**DEFAULT_PREFIXES, **prefixes}
    steps = read_sessions(sessions, prefixes)
    kb = in_memory(console, on, strict=data.strict, limits=limits)
    registry = kb.settings.registry
    asked = _checked_queries(queries, prefixes, Host(tuple(registry.functions), tuple(registry.folds)))
    check_questions(questions, prefixes)
    if out:
        check_folder(Path(out))
    with console.progress():
        change = fill(console, kb, checked, data)
    report = change.report
    unread: list[Diagnostic] = []
    if what != "all":
        rules_later = [rule for step in steps for rule in step.change.add_rules]
        bodies = [
            *(rule.body for rule in (*kb.rules, *rules_later)),
            *(query.query.body for query in asked),
        ]
        atoms = (atom for body in bodies for atom in body_atoms(body))
        unread += unread_relations(loaded_tables(change), atoms, console.prefixes)
    console.findings(unread)
    _show(console, kb, report, change.loads)
    played = play(console, kb, steps)
    if played.ended:
        console.beside = played.document
        console.fail(played.ended)
        sys.exit(1)
    answers = [(file.text, kb.query(query, limit=limit)) for file, query in zip(queries, asked, strict=True)]
    explanations = answered(kb, questions)
    if sessions:
        console.text()
        _show_counts(console, kb)
    for text, answer in answers:
        _show_answers(console, text, answer)
    show_texts(console, explanations)
    exported = None
    if out:
        exported = export(kb, out, form or "csv", everything=what == "all")
        facts_written, files = counted(exported.rows, "fact"), counted(len(exported.files), "file")
        console.text(f"wrote {facts_written} to {files} in {out}")
    if console.as_json:
        warnings = [*report.warnings, *unread, *(w for _, answer in answers for w in answer.warnings)]
        document = _document(kb, report, change.loads, answers, console.heard(warnings))
        document |= export_document(exported)
        document |= explanations_document(explanations)
        console.json(document | played.document if sessions else document)
    if played.shortfalls:
        sys.exit(1)


def _checked_queries(queries: Sequence[TextFile], prefixes: dict[str, str], host: Host) -> list[CheckedQuery]:
    """Parse and check all queries before the evaluation, or raise with all errors of all queries."""
    checked: list[CheckedQuery] = []
    errors: list[Diagnostic] = []
    for file in queries:
        try:
            checked.append(checked_query(file.text, prefixes, host, name=file.name))
        except (SyntaxProblem, CheckProblem) as problem:
            errors += problem.diagnostics
    if errors:
        raise CheckProblem(errors)
    return checked


def _show(console: Console, kb: KnowledgeBase, report: ChangeReport, loads: Sequence[LoadReport]) -> None:
    show_bad_lines(console, loads)
    show_dropped(console, report)
    _show_counts(console, kb, f", {report.seconds:.3f} s")


def _show_counts(console: Console, kb: KnowledgeBase, suffix: str = "") -> None:
    derived = kb.derived(prefixed=True)
    if derived:
        console.table(("predicate", "derived"), [(name, f"{count:,}") for name, count in derived.items()])
    explicit = sum(kb.explicit_counts().values())
    console.text(
        f"{counted(explicit, 'explicit fact')}, {counted(sum(derived.values()), 'derived fact')}, "
        f"{counted(len(kb.graph()), 'hyper-node')}{suffix}"
    )


def _show_answers(console: Console, text: str, answers: Answers) -> None:
    show_problems(console, answers)
    console.text(f"\n{text}")
    show_answers(console, answers)


def _document(
    kb: KnowledgeBase,
    report: ChangeReport,
    loads: Sequence[LoadReport],
    answers: Sequence[tuple[str, Answers]],
    warnings: Sequence[Diagnostic],
) -> dict[str, object]:
    derived = kb.derived()
    return {
        "explicit": sum(kb.explicit_counts().values()),
        "derived": derived,
        "derived_total": sum(derived.values()),
        "seconds": report.seconds,
        "hyper_nodes": len(kb.graph()),
        "nodes": report.to_dict()["nodes"],
        "dropped": report.to_dict()["dropped"],
        "loads": [load.to_dict() for load in loads],
        "queries": [
            {
                "query": text,
                "columns": list(answer.columns),
                "rows": json_rows(answer),
            }
            for text, answer in answers
        ],
        "warnings": [w.to_dict() for w in warnings],
    }
