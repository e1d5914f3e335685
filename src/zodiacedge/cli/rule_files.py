"""Reads rule files into one program with all diagnostics, and the text of session files."""

from __future__ import annotations

import glob
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.cli.standard_input import NAME, STANDARD_INPUT, take_standard_input
from zodiacedge.errors import Diagnostic, LoadProblem, StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.io.text import decoded, read_text
from zodiacedge.kb.warnings import endless_values
from zodiacedge.language.ast import Program
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.lint.lints import lint
from zodiacedge.language.lint.silence import audible
from zodiacedge.language.parser import read_program
from zodiacedge.language.safety import resolve
from zodiacedge.store.layout import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.language.ast import Atom, Rule

EXTENSION = ".rules"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's name and text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """The program of rule files: rules, facts, prefixes, with diagnostics and graph."""

    files: tuple[TextFile, ...]
    program: Program
    findings: tuple[Diagnostic, ...]
    graph: HyperGraph

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
        _standard_input() if path is None else TextFile(str(path), read_text(path)) for path in files
    )


def read_rules(paths: Iterable[str]) -> CheckedProgram:
    """Read and check rule files as one program: syntax, checks and stratification."""
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
    findings += check(Subject(tuple(rules), tuple(facts)))
    graph = HyperGraph()
    sound = tuple(_sound(rules, findings))
    findings += lint(sound)
    try:
        resolved = {rule_key(rule): rule for rule in map(resolve, sound)}
        graph = HyperGraph.build(resolved)
        findings += endless_values(resolved, graph)
    except StratificationProblem as problem:
        findings += problem.diagnostics
    order = {file.name: n for n, file in enumerate(files)}
    findings.sort(key=lambda d: (order.get(d.span.source.name, -1), d.span.start) if d.span else (-1, 0))
    merged = Program(tuple(rules), tuple(facts), tuple(prefixes.items()))
    return CheckedProgram(files, merged, tuple(audible(findings, rules)), graph)


def _sound(rules: Iterable[Rule], findings: Iterable[Diagnostic]) -> Iterator[Rule]:
    """Yield the rules without an error: a cycle among them remains after the corrections."""
    errors = [d.span for d in findings if d.span and d.severity == "error"]
    if not errors:
        yield from rules
        return
    positions: dict[str, list[int]] = {}
    for span in errors:
        positions.setdefault(span.source.name, []).append(span.start)
    for starts in positions.values():
        starts.sort()
    for rule in rules:
        if rule.span:
            starts = positions.get(rule.span.source.name, [])
            if bisect_left(starts, rule.span.start) == bisect_left(starts, rule.span.end):
                yield rule


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
        return [named]
    matches = sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207 - a whole pattern
    if matches:
        return [file for match in matches for file in _expanded(str(match), extension)]
    raise _problem(f"there is no file {path}", "check the name; folders and globs are fine too")


def _standard_input() -> TextFile:
    return TextFile(NAME, decoded(take_standard_input().read(), NAME))


def _problem(message: str, note: str) -> LoadProblem:
    return LoadProblem(Diagnostic("U004", message, note))
