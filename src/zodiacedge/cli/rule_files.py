"""Reads rule files into one program with all diagnostics, and the text of session files."""

from __future__ import annotations

import glob
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.cli.standard_input import NAME, STANDARD_INPUT, take_standard_input
from zodiacedge.errors import CheckProblem, Diagnostic, LoadProblem
from zodiacedge.io.text import decoded, read_text
from zodiacedge.kb.diagnose import diagnose
from zodiacedge.language.ast import Program
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.parser import read_program
from zodiacedge.language.printer import abbreviated
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.store.layout import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.kb.diagnose import LoadedFacts
    from zodiacedge.kb.rule_base import CheckedRules
    from zodiacedge.language.ast import Atom, Rule

EXTENSION = ".rules"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's name and text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """The program of rule files: rules, facts and prefixes, with the findings of the parser."""

    files: tuple[TextFile, ...]
    program: Program
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """The program of rule files with all diagnostics, and its rules without an error."""

    program: Program
    findings: tuple[Diagnostic, ...]
    rules: CheckedRules

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors."""
        return tuple(d for d in self.findings if d.severity == "error")


def is_store(path: str) -> bool:
    """Whether a path is a store: a folder with its marker, or an address, where programs cannot be."""
    return "://" in path or (Path(path) / MARKER).exists()


def text_files(paths: Iterable[str], extension: str = EXTENSION) -> tuple[TextFile, ...]:
    """Return the files of paths, folders (by extension) and globs, each once, in order; `-` is stdin."""
    files: dict[Path | None, None] = {}
    for path in paths:
        files |= dict.fromkeys([None] if path == STANDARD_INPUT else _expanded(path, extension))
    return tuple(
        standard_input_text() if path is None else TextFile(str(path), read_text(path)) for path in files
    )


def parse_rules(paths: Iterable[str]) -> ParsedProgram:
    """Read and parse rule files as one program."""
    files = text_files(paths)
    rules: list[Rule] = []
    facts: list[Atom] = []
    prefixes: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for file in files:
        program, diagnostics = read_program(file.text, file.name)
        rules += program.rules
        facts += program.facts
        prefixes |= dict(program.prefixes)
        findings += diagnostics
    return ParsedProgram(files, Program(tuple(rules), tuple(facts), tuple(prefixes.items())), tuple(findings))


def check_rules(parsed: ParsedProgram, data: LoadedFacts | None = None) -> CheckedProgram:
    """Check a program, alone or with the data that it will run on: rules, facts and stratification."""
    findings, rules = diagnose(parsed.program, parsed.findings, data)
    order = {file.name: n for n, file in enumerate(parsed.files)}
    findings.sort(key=lambda d: (order.get(d.span.source.name, -1), d.span.start) if d.span else (-1, 0))
    return CheckedProgram(parsed.program, tuple(audible(findings, parsed.program.rules)), rules)


def sound_rules(paths: Iterable[str]) -> CheckedProgram:
    """Read and check rule files as one program, or raise with all diagnostics if it has an error.

    The diagnostics of the error have the prefixes of the files, which nobody else knows yet.
    """
    checked = check_rules(parse_rules(paths))
    if checked.errors:
        prefixes = {**DEFAULT_PREFIXES, **dict(checked.program.prefixes)}
        raise CheckProblem([abbreviated(finding, prefixes) for finding in checked.findings])
    return checked


def _expanded(path: str, extension: str) -> list[Path]:
    named = Path(path)
    if is_store(path):
        kind = "an address" if "://" in path else "a store"
        note = "look at a store with zodiac query or zodiac rules, and change it with zodiac apply"
        raise _problem(f"{path} is {kind}, not a program", note)
    if named.is_dir():
        inside = sorted(named.rglob(f"*{extension}"))
        if not inside:
            raise _problem(f"the folder {path} holds no {extension} file", "name the files themselves")
        return inside
    if named.exists():
        if named.suffix and named.suffix != extension and is_data(named):
            raise _problem(f"{path} is a file of facts, not a program", f"load it: --facts {path}")
        return [named]
    matches = sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207 - a whole pattern
    if matches:
        return [file for match in matches for file in _expanded(str(match), extension)]
    note = "check the name; folders and globs are fine too"
    if "(" in path:
        note = f"a query is given as --query {shlex.quote(path)}"
    elif named.suffix == ".zodiac":
        note = f"check the name; a store is made by zodiac init {path}"
    raise _problem(f"there is no file {path}", note)


def is_data(path: Path) -> bool:
    """Whether a file has the extension of a file of facts."""
    from zodiacedge.io.sources import EXTENSIONS  # noqa: PLC0415 - loads all readers

    return path.suffix[1:].lower() in EXTENSIONS


def standard_input_text() -> TextFile:
    """Return the text of standard input."""
    return TextFile(NAME, decoded(take_standard_input().read(), NAME))


def _problem(message: str, note: str) -> LoadProblem:
    return LoadProblem(Diagnostic("U004", message, note))
