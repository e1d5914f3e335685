"""Opens the knowledge base of a command, in memory or in a store, and fills it with a program and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from zodiacedge.cli.functions import registered
from zodiacedge.cli.options import CommitOptions, DataOptions, EngineOptions
from zodiacedge.kb.warnings import unread_relations
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.opening import open_kb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.cli.rule_files import CheckedProgram
    from zodiacedge.cli.standard_input import Source
    from zodiacedge.engine.api import Progress
    from zodiacedge.engine.limits import Limits
    from zodiacedge.engine.registry import AggregateFunction, Function
    from zodiacedge.engine.spark.storage.workspace import Options as SparkOptions
    from zodiacedge.errors import Diagnostic
    from zodiacedge.io import LoadReport
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.transaction import Transaction
    from zodiacedge.language.ast import Predicate
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


class _Arguments(TypedDict):
    functions: Iterable[Function]
    aggregates: Iterable[AggregateFunction]
    engine: str
    master: str
    scratch: str
    seed: int
    options: SparkOptions | None
    progress: Callable[[Progress], None]
    warn: Callable[[Sequence[Diagnostic]], None]


def in_memory(
    console: Console, on: EngineOptions, *, strict: bool = False, limits: Limits | None = None
) -> KnowledgeBase:
    """Open a knowledge base in memory; warnings of a change are shown before its evaluation."""
    return open_kb(strict=strict, limits=limits, **_arguments(console, on))


def reading(
    console: Console, store: str, at: int | None = None, on: EngineOptions | None = None
) -> StoredKnowledgeBase:
    """Open a store for reading, its last version or an earlier one, and report skipped log records."""
    arguments = _arguments(console, on or EngineOptions())
    with console.progress("opening the store"):
        kb = open_kb(store, read_only=True, at=at, **arguments)
    return _opened(console, kb)


def writing(  # noqa: PLR0913 - each is an option of commands
    console: Console,
    store: str,
    on: EngineOptions,
    *,
    create: bool = False,
    strict: bool = False,
    wait: float = 0.0,
    clock: str = "",
    limits: Limits | None = None,
) -> StoredKnowledgeBase:
    """Open a store for writing, and report repairs; warnings of a change are shown before its evaluation."""
    arguments = _arguments(console, on)
    kb = open_kb(store, create=create, wait=wait, clock=clock, strict=strict, limits=limits, **arguments)
    return _opened(console, kb)


def changing(
    console: Console, store: str, options: CommitOptions, *, create: bool = False, strict: bool = False
) -> StoredKnowledgeBase:
    """Open a store for a command that commits one change."""
    on, wait, limits = options.on, options.wait, options.limits
    return writing(console, store, on, create=create, strict=strict, wait=wait, limits=limits)


def fill(
    console: Console, kb: KnowledgeBase, checked: CheckedProgram, data: DataOptions, message: str = ""
) -> Transaction:
    """Commit a checked program and files of facts as one change."""
    with kb.change(message) as change:
        change.add_program(checked.program, checked.rules)
        read_files(console, change.load, data.files, data)
    return change


def read_files(
    console: Console, read: Callable[..., LoadReport], files: Sequence[Source], options: DataOptions
) -> None:
    """Load files into a change, or unload them, if there are any."""
    if files:
        read(
            *files,
            header=options.header,
            delimiter=options.delimiter,
            base=options.base,
            strict=options.strict,
            quarantine=options.quarantine,
            progress=console.loading,
        )


def loaded_tables(change: Transaction) -> Iterator[Predicate]:
    """Yield the predicates of the tables that were loaded; RDF may have more than a program reads."""
    names = {file.relation for load in change.loads for file in load.files if file.relation}
    # Spark may need a job to name the classes of a batch.
    for batch in change.collected().loaded if names else ():
        yield from (predicate for predicate in batch.predicates() if predicate.name in names)


def unread_by_rules(
    kb: KnowledgeBase, tables: Iterable[Predicate], report: ChangeReport | None = None
) -> tuple[Diagnostic, ...]:
    """Hint at loaded tables that no rule reads, if there are rules; `report` is that of a dry run."""
    rules = kb.rules
    if report and report.dry_run:
        rules = (*(rule for rule in rules if rule not in report.rules_removed), *report.rules_added)
    atoms = (atom for rule in rules for atom in body_atoms(rule.body))
    shown = {**DEFAULT_PREFIXES, **kb.prefixes}
    return tuple(unread_relations(tables, atoms, shown, "no rule")) if rules else ()


def spark_options(texts: Sequence[str]) -> SparkOptions | None:
    """Return the options of Spark that a command was given; None if there are none."""
    if not texts:
        return None
    from zodiacedge.engine.spark.storage.workspace import Options  # noqa: PLC0415 - loads Arrow

    return Options.of_texts(texts)


def _arguments(console: Console, on: EngineOptions) -> _Arguments:
    registry = registered(on.functions)
    return {
        "functions": registry.functions.values(),
        "aggregates": registry.folds.values(),
        "engine": on.engine,
        "master": on.master,
        "scratch": on.scratch,
        "seed": on.seed,
        "options": spark_options(on.spark),
        "progress": console.evaluating,
        "warn": console.findings,
    }


def _opened(console: Console, kb: StoredKnowledgeBase) -> StoredKnowledgeBase:
    console.prefixes = {**DEFAULT_PREFIXES, **kb.prefixes}
    console.findings(kb.recovered)
    return kb
