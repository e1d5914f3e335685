"""Rule files in, programs with every finding out; and the texts of other files that are named likewise."""

from __future__ import annotations

import glob
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem, StratificationProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.language.ast import Program
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Subject, check
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
class Reading:
    """Everything that some rule files say: rules, facts, prefixes, and findings about them."""

    files: tuple[TextFile, ...]
    program: Program
    findings: tuple[Diagnostic, ...]
    graph: HyperGraph

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors."""
        return tuple(d for d in self.findings if d.severity == "error")


def text_files(paths: Iterable[str], extension: str = EXTENSION) -> tuple[TextFile, ...]:
    """Return the files that files, folders (by their extension) and globs name, each once, in order."""
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(_expanded(path, extension))
    return tuple(TextFile(str(path), _text(path)) for path in found)


def read_rules(paths: Iterable[str]) -> Reading:
    """Read and check rule files as one program: syntax, checks and stratification."""
    files = text_files(paths)
    rules: list[Rule] = []
    facts: list[Atom] = []
    prefixes: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for file in files:
        text, found = read_program(file.text, file.name)
        rules += text.rules
        facts += text.facts
        prefixes |= dict(text.prefixes)
        findings += found
    findings += check(Subject(tuple(rules), tuple(facts)))
    graph = HyperGraph()
    try:
        graph = HyperGraph.build({rule_key(r): r for r in map(resolve, _sound(rules, findings))})
    except StratificationProblem as problem:
        findings += problem.diagnostics
    order = {file.name: n for n, file in enumerate(files)}
    findings.sort(key=lambda d: (order.get(d.span.source.name, -1), d.span.start) if d.span else (-1, 0))
    program = Program(tuple(rules), tuple(facts), tuple(prefixes.items()))
    return Reading(files, program, tuple(findings), graph)


def _sound(rules: Iterable[Rule], findings: Iterable[Diagnostic]) -> Iterator[Rule]:
    """Yield the rules without an error: a circle among these is one whatever becomes of the others."""
    errors = [d.span for d in findings if d.span and d.severity == "error"]
    if not errors:
        yield from rules
        return
    places: dict[str, list[int]] = {}
    for span in errors:
        places.setdefault(span.source.name, []).append(span.start)
    for starts in places.values():
        starts.sort()
    for rule in rules:
        if rule.span:
            starts = places.get(rule.span.source.name, [])
            if bisect_left(starts, rule.span.start) == bisect_left(starts, rule.span.end):
                yield rule


def _expanded(path: str, extension: str) -> list[Path]:
    here = Path(path)
    if (here / MARKER).exists() or "://" in path:
        what = "a store" if (here / MARKER).exists() else "an address"
        note = "look at a store with zodiac query or zodiac rules, and change it with zodiac apply"
        raise _problem(f"{path} is {what}, not a program", note)
    if here.is_dir():
        inside = sorted(here.rglob(f"*{extension}"))
        if not inside:
            raise _problem(f"the folder {path} holds no {extension} file", "name the files themselves")
        return inside
    if here.exists():
        return [here]
    matches = sorted(map(Path, glob.glob(path, recursive=True)))  # noqa: PTH207 - a whole pattern
    if matches:
        return [one for match in matches for one in _expanded(str(match), extension)]
    raise _problem(f"there is no file {path}", "check the name; folders and globs are fine too")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _problem(f"{path} cannot be read: {error.strerror or error}", "check its rights") from error
    except UnicodeDecodeError as error:
        raise _problem(
            f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
            "save it as UTF-8",
        ) from error


def _problem(message: str, note: str) -> LoadProblem:
    return LoadProblem(Diagnostic("U004", message, note))
