"""Collects a change piece by piece and commits it as one transaction."""

from __future__ import annotations

import os
import re
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias, cast

from zodiacedge.engine.api import TakesFrames
from zodiacedge.errors import Diagnostic, SyntaxProblem, UsageProblem
from zodiacedge.kb.answers import Answers
from zodiacedge.kb.arguments import given_relation, given_text
from zodiacedge.kb.change import Change
from zodiacedge.kb.diagnose import diagnose
from zodiacedge.kb.rule_base import NOTHING_CHECKED, CheckedRules
from zodiacedge.kb.time.clock import given_moment, later_of, system_time
from zodiacedge.language.checks import text_order
from zodiacedge.language.names import full_name
from zodiacedge.language.parser import ground, read_program
from zodiacedge.language.scanner import LABEL
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from zodiacedge import io
    from zodiacedge.engine.api import Batch
    from zodiacedge.io import LoadReport, ProgressCallback
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Atom, Fact, Program, Rule

    Text: TypeAlias = str | os.PathLike[str]
    Rows: TypeAlias = Iterable[Sequence[object] | Fact] | pa.Table | DataFrame
    Facts: TypeAlias = str | Rows

# No program is like this: it has no parenthesis, and is no comment.
_FILE_NAME = re.compile(r"(?!\s*//)[^\n(){}<>@#]*[\w-]\.[A-Za-z]\w*")

_A_LABEL = re.compile(LABEL)


class _Reading(NamedTuple):
    """Options for reading files; `io.read` explains them."""

    header: bool
    base: str
    strict: bool
    delimiter: str
    progress: ProgressCallback | None
    quarantine: str | os.PathLike[str] | None


class Changeable(Protocol):
    """The interface of a knowledge base that a transaction needs."""

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that texts may use."""

    def loading(self) -> AbstractContextManager[tuple[Batch, Callable[[], None]]]:
        """Lock the engine for reading files into a batch; the function yields to waiting threads."""

    def apply(
        self,
        change: Change,
        *,
        message: str = "",
        prefixes: Mapping[str, str] | None = None,
        committed: Callable[[ChangeReport], None] | None = None,
    ) -> ChangeReport:
        """Commit a change."""

    def dry_run(self, change: Change) -> ChangeReport:
        """Evaluate a change without committing it."""


class Transaction:
    """Collects a change; the `with` block commits it, an exception in the block drops it."""

    def __init__(self, kb: Changeable, message: str = "") -> None:
        """Begin with an empty change."""
        self._kb = kb
        self._message = message
        self._add_rules: list[Rule] = []
        self._remove_rules: list[str | Rule] = []
        self._add_facts: list[Fact] = []
        self._remove_facts: list[Fact] = []
        self._loaded: list[Batch] = []
        self._unloaded: list[Batch] = []
        self._quarantines: dict[int, str | os.PathLike[str]] = {}
        self._atoms: list[Atom] = []
        self._replace_labels: set[str] = set()
        self._sync_rules = False
        self._checked_rules = NOTHING_CHECKED
        self._tick: datetime | None = None
        self._prefixes: dict[str, str] = kb.prefixes
        self._report: ChangeReport | None = None
        self.loads: list[LoadReport] = []

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes of the knowledge base and of this change."""
        return dict(self._prefixes)

    def iri(self, name: str) -> IRI:
        """Return the IRI of a name, with the prefixes of the knowledge base and of this change: `ex:wt1`."""
        return IRI(full_name(given_text(name), self._prefixes))

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit, unless the block failed."""
        if kind is None:
            self._refuse_if_committed()
            self._kb.apply(
                self.collected(), message=self._message, prefixes=self._prefixes, committed=self._committed
            )

    def _committed(self, report: ChangeReport) -> None:
        self._report = report

    def dry_run(self) -> ChangeReport:
        """Evaluate the change collected so far without committing it."""
        self._refuse_if_committed()
        return self._kb.dry_run(self.collected())

    @property
    def report(self) -> ChangeReport:
        """The report of the change, once it is committed."""
        if self._report is None:
            raise UsageProblem(Diagnostic("U002", "the change is not committed yet", "end the with block"))
        return self._report

    @property
    def is_committed(self) -> bool:
        """Whether the change is committed, also if an exception followed the commit."""
        return self._report is not None

    def collected(self) -> Change:
        """Return the change as collected so far."""
        return Change(
            tuple(self._add_rules),
            tuple(self._remove_rules),
            tuple(self._add_facts),
            tuple(self._remove_facts),
            tuple(self._loaded),
            tuple(self._unloaded),
            dict(self._quarantines),
            atoms=tuple(self._atoms),
            warnings=tuple(warning for load in self.loads for warning in load.warnings),
            replace_labels=frozenset(self._replace_labels),
            sync_rules=self._sync_rules,
            tick=self._tick,
            checked_rules=self._checked_rules,
        )

    def tick(self, moment: datetime | str | None = None) -> None:
        """Move the clock to a moment, `"2026-01-01T12:00:00Z"` or a datetime; the system's time if not given.

        It cannot go back. The facts of the change are those of that moment.
        """
        self._refuse_if_committed()
        self._tick = later_of(self._tick, system_time() if moment is None else given_moment(moment))

    def add_rules(self, text: Text, name: str = "<text>", *, replace: bool = False) -> None:
        """Add the rules and facts of a program text, or of the file of a `Path`.

        With `replace`, a rule of the text replaces the rule that has its label.
        """
        program = self._read(*_named_text(text, name))
        if replace:
            self._replace_labels.update(rule.label for rule in program.rules if rule.label)
        self.add_program(program)

    def sync_rules(self, text: Text, name: str = "<text>") -> None:
        """Make the rules those of a program text or file: add missing rules, remove all others.

        A rule that stays gets the label of the text. The facts of the text are added, and no facts are
        removed. Several texts are taken together. Texts without any rule are refused while rules are in
        force.
        """
        self.add_rules(text, name)
        self._sync_rules = True

    def add_program(self, program: Program, checked: CheckedRules = NOTHING_CHECKED) -> None:
        """Add the rules, facts and prefixes of a parsed program, whose rules may have been checked."""
        self._refuse_if_committed()
        if checked.keyed:
            self._checked_rules = checked
        self._prefixes |= dict(program.prefixes)
        self._add_facts_of(program)
        self._add_rules += program.rules

    def remove_rules(self, text: Text, name: str = "<text>") -> None:
        """Remove rules, by label, or by text up to variable names, or by the text of the file of a `Path`."""
        self._refuse_if_committed()
        text, name = _named_text(text, name)
        if _A_LABEL.fullmatch(text.strip()):
            self._remove_rules.append(text.strip())
            return
        program = self._read(text, name)
        self._remove_rules += program.rules
        self._remove_facts += [ground(atom) for atom in program.facts]

    def add_facts(self, facts: Facts, relation: str | IRI = "", **columns: object) -> None:
        """Add facts.

        They are given as program text, as rows `(predicate, value, …)`, as `Fact`s, or as rows `(value, …)`
        or a table of `relation`: an Arrow table, a data frame of pandas, Polars or Spark, or the answers of a
        query. The name of a predicate may have a prefix, `ex:reading`; the name of an `IRI` or a `Fact` is a
        full one.

            c.add_facts(df, "reading", sensor=ze.iri("http://farm/{sensor}"), value=..., at="time")

        Args:
            facts: The facts.
            relation: The relation of rows and tables.
            columns: For a table, its columns in the order of the arguments: `...` for the column of that
                name, the name or number of another, or a term with columns in braces. All of them in their
                order if not given. Rows with a null in one of them are left out and counted.
        """
        if isinstance(facts, str):
            self._add_facts_of(self._facts_text(facts, relation, columns))
        else:
            self._add_facts += self._rows(facts, relation, columns, self._loaded)

    def remove_facts(self, facts: Facts, relation: str | IRI = "", **columns: object) -> None:
        """Remove explicit facts, given as for `add_facts`."""
        if isinstance(facts, str):
            self._remove_facts += [ground(atom) for atom in self._facts_text(facts, relation, columns).facts]
        else:
            self._remove_facts += self._rows(facts, relation, columns, self._unloaded)

    def load(  # noqa: PLR0913 - each keyword is an option that users set alone
        self,
        *sources: str | os.PathLike[str],
        header: bool = False,
        base: str = "",
        strict: bool = False,
        delimiter: str = "",
        progress: ProgressCallback | None = None,
        quarantine: str | os.PathLike[str] | None = None,
    ) -> LoadReport:
        """Add the facts of files, folders and globs; the extension is the format.

        The relation of `relation=path` may have a prefix. Bad lines are written to a file in the folder
        `quarantine`, if given, with position and reason; facts that are too old for their `@keep` are written
        to one of their own when the change is committed. `io.read` explains the other options.
        """
        reading = _Reading(header, base, strict, delimiter, progress, quarantine)
        return self._read_files(sources, reading, self._loaded)

    def unload(  # noqa: PLR0913 - each keyword is an option that users set alone
        self,
        *sources: str | os.PathLike[str],
        header: bool = False,
        base: str = "",
        strict: bool = False,
        delimiter: str = "",
        progress: ProgressCallback | None = None,
        quarantine: str | os.PathLike[str] | None = None,
    ) -> LoadReport:
        """Remove the explicit facts of files, folders and globs, read as `load` reads them."""
        reading = _Reading(header, base, strict, delimiter, progress, quarantine)
        return self._read_files(sources, reading, self._unloaded)

    def _read_files(
        self, sources: Sequence[str | os.PathLike[str]], reading: _Reading, batches: list[Batch]
    ) -> LoadReport:
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        self._refuse_if_committed()
        header, base, strict, delimiter, progress, quarantine = reading
        bad_lines = io.quarantine(quarantine) if quarantine is not None else nullcontext()
        with bad_lines as take, self._kb.loading() as (batch, yield_to_waiters):

            def step(state: io.LoadProgress) -> None:
                if progress:
                    progress(state)
                yield_to_waiters()

            load = io.read(
                sources,
                header=header,
                base=base,
                strict=strict,
                delimiter=delimiter,
                prefixes=self._prefixes,
                progress=step,
                on_bad_line=take,
            )
            batch.load(load)
        if quarantine is not None and batches is self._loaded:
            self._quarantines[len(batches)] = quarantine
        batches.append(batch)
        self.loads.append(load.report)
        return load.report

    def _refuse_if_committed(self) -> None:
        if self._report:
            raise UsageProblem(
                Diagnostic("U002", "the change is committed already", "begin another one: kb.change()")
            )

    def _read(self, text: str, name: str = "<text>", *, rules: bool = True) -> Program:
        self._refuse_if_committed()
        program, findings = read_program(given_text(text), name, self._prefixes)
        if findings:
            # With the errors of the statements that parse, so that one run shows all.
            every = diagnose(program, findings).findings
            errors = (finding for finding in every if finding.severity == "error")
            raise SyntaxProblem(sorted(errors, key=text_order))
        if program.rules and not rules:
            raise UsageProblem(Diagnostic("U003", "expected facts, found a rule", "use add_rules"))
        self._prefixes |= dict(program.prefixes)
        return program

    def _facts_text(self, text: str, relation: str | IRI, columns: Mapping[str, object]) -> Program:
        if relation or columns:
            hint = "give the text alone; rows of values and tables take relation="
            raise UsageProblem(Diagnostic("U013", "a program text names its relations itself", hint))
        _not_a_file(text, "call load({})")
        return self._read(text, rules=False)

    def _add_facts_of(self, program: Program) -> None:
        self._add_facts += [ground(atom) for atom in program.facts]
        self._atoms += program.facts

    def _rows(
        self, facts: Rows, relation: str | IRI, columns: Mapping[str, object], batches: list[Batch]
    ) -> list[Fact]:
        """Return the facts of rows; those of a table become a batch."""
        self._refuse_if_committed()
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        name = given_relation(relation, self._prefixes)
        if isinstance(facts, Answers):
            # Terms as they are: a Python value may have lost its datatype.
            facts = facts.to_arrow() if columns else facts.rows
        rows: Any = facts
        if not isinstance(facts, list | tuple) and (io.is_spark_frame(facts) or io.is_table(facts)):
            if not name:
                raise io.no_relation(facts)
            self._table(facts, name, columns, batches)
            return []
        if columns:
            hint = "rows are values in order; give a table or a data frame for columns by name"
            raise UsageProblem(
                Diagnostic("U013", f"columns are named, and a {type(facts).__name__} has none", hint)
            )
        if isinstance(facts, bytes | dict) or not hasattr(facts, "__iter__"):
            hint = "give program text, a list of rows or Facts, or an Arrow table or data frame"
            raise UsageProblem(Diagnostic("U013", f"expected facts, found {facts!r}", hint))
        return io.facts_of_rows(rows, IRI(name) if name else None, self._prefixes)

    def _table(self, given: object, name: str, columns: Mapping[str, object], batches: list[Batch]) -> None:
        """Add the rows of a table to a batch, and report on rows that were left out."""
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow
        from zodiacedge.io.formats.column_mapping import ColumnMapping  # noqa: PLC0415 - as above

        mapping, from_spark = ColumnMapping.of(columns), io.is_spark_frame(given)
        started = time.perf_counter()
        with self._kb.loading() as (batch, _):
            if from_spark and isinstance(batch, TakesFrames):
                io.refuse_stream(given)
                facts, dropped = batch.add_frame(cast("DataFrame", given), name, mapping)
            else:
                table, dropped = io.arrow_table(given), 0
                if mapping or from_spark:
                    table, dropped = mapping.apply(table)
                facts = len(table)
                batch.add_table(table, name)
        batches.append(batch)
        self.loads.append(io.table_report(name, facts, dropped, time.perf_counter() - started))


def _named_text(given: Text, name: str) -> tuple[str, str]:
    """Return a program text and its name in messages: those of the file, if a path is given."""
    if not isinstance(given, os.PathLike):
        return _not_a_file(given_text(given), "give it as Path({})"), name
    from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

    path = os.fspath(given)
    return io.read_text(path), path


def _not_a_file(text: str, cure: str) -> str:
    """Return a program text; raise if it is the name of a file, which is no program."""
    if _FILE_NAME.fullmatch(text):
        hint = f"to read the file, {cure.format(repr(text))}"
        raise UsageProblem(Diagnostic("U013", f"expected a program text, found a file name: {text}", hint))
    return text


def given_change(value: object) -> Change:
    """Return an argument that is a change, or raise."""
    if isinstance(value, Change):
        return value
    hint = "collect it: with kb.change() as c: …"
    raise UsageProblem(Diagnostic("U013", f"expected a change, found {value!r}", hint))
