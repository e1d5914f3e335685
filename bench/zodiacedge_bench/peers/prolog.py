"""SWI-Prolog with tabling, in a process that loads the program and then waits for a start signal."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zodiacedge_bench.peers.portable import name_of
from zodiacedge_bench.peers.spelling import Dialect

if TYPE_CHECKING:
    from zodiacedge_bench.peers.portable import Portable

DIALECT = Dialect(variable="V", negation="\\+ ", signs={"!=": "=\\=", "<=": "=<", "=": "=:="})
_SPACE = "12g"
_MAIN = """
all(Goal) :- forall(Goal, true).
count(Name, Goal) :- aggregate_all(count, Goal, N), format("~w ~d~n", [Name, N]).
main :-
    format("ready~n"), flush_output, read(_),
    statistics(cputime, Before), evaluate, statistics(cputime, After),
    Spent is After - Before, format("~6f~n", [Spent]), flush_output, counts, halt.
"""


class Prolog:
    """The peer."""

    name = "swi-prolog"
    aggregates: frozenset[str] = frozenset()

    def version(self) -> str:
        """Return its version, if it is on the path."""
        program = shutil.which("swipl")
        if not program:
            return ""
        result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        return result.stdout.strip().removeprefix("SWI-Prolog version ").partition(" ")[0]

    def trial(self, program: Portable) -> PrologTrial:
        """Start a process that loads rules and facts."""
        return PrologTrial(program)


class PrologTrial:
    """One evaluation: queries for all facts of every derived predicate."""

    def __init__(self, program: Portable) -> None:
        """Start a process that loads rules and facts."""
        self._program = program
        with tempfile.NamedTemporaryFile("w", suffix=".pl", encoding="utf-8", delete=False) as file:
            file.write(_text(program))
        try:
            self._process = subprocess.Popen(
                [
                    shutil.which("swipl") or "swipl",
                    "-q",
                    f"--stack-limit={_SPACE}",
                    f"--table-space={_SPACE}",
                    "-g",
                    "main",
                    file.name,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._line()
        finally:
            Path(file.name).unlink()

    def evaluate(self) -> float:
        """Evaluate; return the processor time that the process reports."""
        pipe = self._process.stdin
        if pipe:
            pipe.write("go.\n")
            pipe.flush()
        return float(self._line())

    def counts(self) -> dict[str, int]:
        """Read the counts and wait for the end of the process."""
        with self._process:
            lines = [self._line().split() for _ in self._program.derived]
        counts = {name: int(count) for name, count in lines}
        return {predicate.name: counts[name_of(predicate)] for predicate in self._program.derived}

    def _line(self) -> str:
        pipe: IO[str] | None = self._process.stdout
        line = pipe.readline() if pipe else ""
        if not line:
            message = f"swipl ended with code {self._process.wait()}"
            raise RuntimeError(message)
        return line.strip()


def _text(program: Portable) -> str:
    goals = {name_of(p): f"{name_of(p)}({', '.join('_' * p.arity)})" for p in program.derived}
    tabled = {name_of(rule.head.predicate): rule.head.predicate.arity for rule in program.rules}
    heads = {rule.head.predicate for rule in program.rules}
    lines = [
        ":- use_module(library(aggregate)).",
        ":- style_check(-discontiguous).",
        ":- style_check(-singleton).",
    ]
    lines += [f":- table {name}/{arity}." for name, arity in tabled.items()]
    lines += [f":- dynamic {name_of(p)}/{p.arity}." for p in program.predicates() if p not in heads]
    lines += [*DIALECT.facts(program), *DIALECT.rules(program), _MAIN]
    lines.append(f"evaluate :- {', '.join(f'all({goal})' for goal in goals.values())}.")
    lines.append(f"counts :- {', '.join(f'count({name}, {goal})' for name, goal in goals.items())}.")
    return "\n".join(lines) + "\n"
