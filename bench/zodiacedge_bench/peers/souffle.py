"""Soufflé, compiled: its generated C++ with a driver that loads the facts and then waits for a start signal.

Compilation and loading, which fills the indexes of the input relations, come before the clock starts. The
binary of a program is kept for all of its runs. Needs `souffle` and `souffle-compile.py` on the path, as its
installation puts them there, and a C++ compiler.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING

from zodiacedge.language.canonical import rule_key
from zodiacedge_bench.peers.portable import COUNT, name_of
from zodiacedge_bench.peers.spelling import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.language.ast import Aggregate, Rule
    from zodiacedge_bench.peers.portable import Portable

_COMPILER = "souffle-compile.py"
# The generated file has a main function of its own unless it is embedded.
_DRIVER = """
#define __EMBEDDED_SOUFFLE__
#include "zodiac.cpp"
#include <ctime>
#include <iostream>
#include <memory>
#include <string>

int main(int, char** arguments) {
    std::unique_ptr<souffle::SouffleProgram> program(souffle::ProgramFactory::newInstance("zodiac"));
    program->setNumThreads(std::stoul(arguments[2]));
    program->loadAll(arguments[1]);
    std::cout << "ready" << std::endl;
    std::string line;
    std::getline(std::cin, line);
    const std::clock_t start = std::clock();
    program->run();
    std::cout << double(std::clock() - start) / CLOCKS_PER_SEC << std::endl;
    for (souffle::Relation* relation : program->getOutputRelations())
        std::cout << relation->getName() << ' ' << relation->size() << std::endl;
}
"""


def _count(dialect: Dialect, rule: Rule, aggregate: Aggregate) -> str:
    # A variable that groups must be bound outside the braces: the groups are a relation of their own.
    groups = ", ".join(map(dialect.term, aggregate.groups))
    body = dialect.body(aggregate.body)
    name = f"groups_{blake2b(rule_key(rule).encode(), digest_size=8).hexdigest()}"
    target = dialect.term(aggregate.folds[0].target)
    return (
        f".decl {name}({', '.join(f'{dialect.term(v)}: number' for v in aggregate.groups)})\n"
        f"{name}({groups}) :- {body} .\n"
        f"{dialect.atom(rule.head)} :- {name}({groups}), {target} = count : {{ {body} }} ."
    )


DIALECT = Dialect(variable="V", negation="!", count=_count)


class Souffle:
    """The peer, with a number of threads."""

    aggregates = COUNT

    def __init__(self, threads: int) -> None:
        """Choose the number of threads."""
        self._threads = threads

    @property
    def name(self) -> str:
        """Its name in tables."""
        return "souffle" if self._threads == 1 else f"souffle-{self._threads}-threads"

    def version(self) -> str:
        """Return its version, if it and its compiler script are on the path."""
        program = shutil.which("souffle")
        if not program or not shutil.which(_COMPILER):
            return ""
        result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        words = result.stdout.replace(":", " ").split()
        return next((word for word in words if word[0].isdigit()), "unknown")

    def trial(self, program: Portable) -> SouffleTrial:
        """Start a process that loads the facts."""
        return SouffleTrial(program, self._threads)


class SouffleTrial:
    """One evaluation."""

    def __init__(self, program: Portable, threads: int) -> None:
        """Compile the program, if no earlier run did, and start a process that loads the facts."""
        self._program = program
        binary = _compiled("\n".join(program_text(program)))
        with tempfile.TemporaryDirectory() as folder:
            for predicate, rows in program.facts.items():
                lines = ("\t".join(map(str, row)) for row in rows.tolist())
                (Path(folder) / f"{name_of(predicate)}.facts").write_text("\n".join((*lines, "")))
            self._process = subprocess.Popen(
                [binary.name, folder, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self._line()

    def evaluate(self) -> float:
        """Evaluate; return the processor time that the process reports."""
        pipe = self._process.stdin
        if pipe:
            pipe.write("go\n")
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
            message = f"the program that souffle compiled ended with code {self._process.wait()}"
            raise RuntimeError(message)
        return line.strip()


class _Binary:
    """A compiled program, in a folder that goes when nothing refers to it."""

    def __init__(self, text: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        (folder / "zodiac.dl").write_text(text)
        (folder / "evaluate.cpp").write_text(_DRIVER)
        self._run(folder, "souffle", "--no-warn", "--generate=zodiac.cpp", "zodiac.dl")
        self._run(folder, _COMPILER, "evaluate.cpp", "-o", "evaluate")
        self.name = str(folder / "evaluate")

    @staticmethod
    def _run(folder: Path, program: str, *args: str) -> None:
        command = [shutil.which(program) or program, *args]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            message = f"{program} ended with code {result.returncode}:\n{result.stdout}{result.stderr}"
            raise RuntimeError(message)


@lru_cache(maxsize=1)
def _compiled(text: str) -> _Binary:
    return _Binary(text)


def program_text(program: Portable) -> Iterator[str]:
    """Yield the lines of the program: declarations, then rules."""
    derived = frozenset(program.derived)
    for predicate in program.predicates():
        name = name_of(predicate)
        yield f".decl {name}({', '.join(f'a{n}: number' for n in range(predicate.arity))})"
        if predicate in program.facts:
            yield f".input {name}"
        if predicate in derived:
            yield f".output {name}"
    yield from DIALECT.rules(program)
