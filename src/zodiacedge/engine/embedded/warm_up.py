"""Load or compile every kernel, so that a later run does not wait for it.

A small program that uses every kind of step is evaluated and changed. `zodiac warm` compiles for the
processor of this machine; the build of a wheel runs this module to compile for a portable one. Both link what
was compiled, in a process that loads it: then all kernels that Python calls are those that it has called.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, CalledProcessError, Popen
from time import perf_counter
from typing import Any

import numpy as np

from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate.closure_kernels import reach
from zodiacedge.engine.embedded.ingest.ntriples.reader import TripleReader, group_triples
from zodiacedge.engine.embedded.ingest.tables.tabular import read_nothing
from zodiacedge.engine.embedded.kernels import folders, linked
from zodiacedge.engine.embedded.kernels.jit import MEMORY, words
from zodiacedge.engine.embedded.storage.arrangement import Arrangement, Run
from zodiacedge.engine.embedded.storage.table import Table, count_distinct, count_terms
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.fingerprints import fingerprints
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.extras import has
from zodiacedge.graph import HyperGraph
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.parser import ground, parse_program, parse_query
from zodiacedge.language.safety import resolve, resolve_query
from zodiacedge.terms import IRI

LOGGER = logging.getLogger("zodiacedge.kernels")
# More than a dictionary starts with, so that it grows.
_MANY_TERMS = 4096
# So long that giving the text up makes the dictionary smaller.
_LONG_TEXT = 10_000

_PROGRAM = """
p(X, Y) :- p(X, Z), p(Z, Y), X != Y .
s(X, Y) :- s(Y, X) .
s(X, Y) :- s(X, Z), s(Z, Y), X != Y .
t(X, Y) :- t(X, Z), p(Z, Y) .
v(X, Y) :- v(X, Z), v(W, Z), p(V, W), p(V, Y) .
u(X, Y, Z) :- u(X, Y, W), p(W, Z), not s(X, Z), Y < 5 .
n(X, N) :- AGGREGATE(p(X, Y)) ON X WITH COUNT(Y) AS N .
f(X, M) :- n(X, N), M := N * 2 + 1, contains(str(M), "1") = true .
w(X) :- p(X, _) .
p(a, b) . p(b, c) . p(c, a) . s(a, b) . t(a, a) . v(a, b) . u(a, 1, b) .
"""


@dataclass(frozen=True)
class Kernels:
    """Where the kernels of this process came from, and how long that took."""

    processor: str
    """By LLVM's name; empty if the kernels are linked, as they do without LLVM."""
    linked: str
    """The file with linked kernels; empty without one."""
    folder: str
    """Where kernels for this processor are kept; it need not exist. Empty if there is no such place."""
    own: int = 0
    """The number of kernels that were loaded from the folder."""
    shipped: int = 0
    """The number of kernels of the package that were loaded."""
    compiled: int = 0
    missing: bool = False
    """Whether a kernel is neither in the folder nor in the package, and was not compiled."""
    obstacle: str = ""
    """Why the kernels of the package cannot be used; empty if they can."""
    unlinked: str = ""
    """Why kernels were not linked; empty if they were, or were not to be."""
    seconds: float = 0


def compile_for_this_processor() -> Kernels:
    """Compile every kernel that is not in the folder of this machine's processor yet, and link them.

    That is done by processes of their own: this one may have linked kernels already.

    Raises:
        UsageProblem: If the folder cannot be written, or Numba is not installed.
    """
    _need_numba()
    home = folders.cache_home()
    if home is None or not folders.takes_files(home / folders.FOLDER):
        raise UsageProblem(
            Diagnostic(
                "U005",
                f"compiled kernels cannot be written: {home or 'no cache folder'} does not take files",
                "name a folder that does with NUMBA_CACHE_DIR; the kernels of a platform wheel need none",
            )
        )
    started = perf_counter()
    kernels = Kernels(**_elsewhere("compile"))
    there = home / folders.FOLDER / linked.own_name()
    if not kernels.compiled and there == linked.FILE:
        return replace(kernels, linked=str(there), seconds=perf_counter() - started)
    outcome = _elsewhere("link")
    return replace(
        kernels, linked=outcome["linked"], unlinked=outcome["unlinked"], seconds=perf_counter() - started
    )


def find_kernels() -> Kernels:
    """Load every kernel as a run would, and compile nothing.

    Raises:
        UsageProblem: If the kernels are not linked, and Numba is not installed.
    """
    if linked.FILE is None:
        _need_numba()
        return _load(from_package=True, may_compile=False)
    started = perf_counter()
    warm()
    return Kernels("", str(linked.FILE), str(linked.FILE.parent), seconds=perf_counter() - started)


def _load(*, from_package: bool, may_compile: bool) -> Kernels:
    from zodiacedge.engine.embedded.kernels import cache  # noqa: PLC0415 - needs Numba
    from zodiacedge.engine.embedded.kernels.target import Target  # noqa: PLC0415 - needs Numba

    started, missing = perf_counter(), False
    with cache.looking_up(from_package=from_package, may_compile=may_compile) as lookup:
        try:
            warm()
        except cache.NotCompiledError:
            missing = True
    return Kernels(
        processor=Target.here().processor,
        linked="",
        folder=str(cache.own_folder() or ""),
        own=lookup.own,
        shipped=lookup.shipped,
        compiled=lookup.compiled,
        missing=missing,
        obstacle=cache.shipped_obstacle(),
        seconds=perf_counter() - started,
    )


def _need_numba() -> None:
    if os.environ.get("ZODIAC_PURE_PYTHON") or find_spec("numba") is None:
        raise UsageProblem(
            Diagnostic("U007", "Numba is not installed: kernels are interpreted", "pip install numba")
        )


def _elsewhere(*arguments: str) -> dict[str, Any]:
    """Run this module in a process that has Numba compile kernels, and pass on what it logs."""
    environment = os.environ | {"ZODIAC_JIT": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-m", "zodiacedge.engine.embedded.warm_up", *arguments]
    with Popen(command, env=environment, stdout=PIPE, stderr=PIPE, text=True) as process:  # noqa: S603 - this module
        if process.stdout is None or process.stderr is None:
            raise AssertionError
        logged = []
        for line in process.stderr:
            logged.append(line)
            LOGGER.info("%s", line.rstrip("\n"))
        text = process.stdout.read()
    if process.returncode:
        raise CalledProcessError(process.returncode, command, stderr="".join(logged))
    outcome: dict[str, Any] = json.loads(text)
    return outcome


def _link(folder: str) -> dict[str, str]:
    """Link the kernels, for a wheel into a folder, or else into the user's; return the file, or why not."""
    from zodiacedge.engine.embedded.kernels import link  # noqa: PLC0415 - needs Numba

    _load(from_package=False, may_compile=False)
    try:
        made = link.link_shipped(Path(folder)) if folder else link.link_own()
    except link.LinkError as problem:
        return {"linked": "", "unlinked": str(problem)}
    return {"linked": str(made), "unlinked": ""}


def main(what: str = "compile", folder: str = "") -> None:
    """Compile or link kernels in this process, and print what came of it as JSON."""
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    LOGGER.setLevel(logging.INFO)
    done = _link(folder) if what == "link" else asdict(_load(from_package=False, may_compile=True))
    print(json.dumps(done))  # noqa: T201 - for the process that started this one


def warm() -> None:
    """Run a small program on every kernel."""
    program = parse_program(_PROGRAM)
    rules = {rule_key(rule): rule for rule in map(resolve, program.rules)}
    facts = [ground(atom) for atom in program.facts]
    settings = Settings()
    for modules in (True, False):
        engine = EmbeddedEngine(modules=modules, strategy="maintain")
        graph = HyperGraph.build(rules)
        state = engine.materialise(rules, graph, facts, settings)
        state.answer(resolve_query(parse_query("?- p(X, Y), not s(X, Y) .")), settings)
        for adding in (False, True):
            some, none = state.batch(), state.batch()
            some.add(facts[:4])
            fact_delta = state.effective_delta(some, none) if adding else state.effective_delta(none, some)
            state = state.maintain(rules, graph, fact_delta, settings).commit()
    _use_tables()
    dictionary = Dictionary()
    triples = TripleReader(dictionary, quads=False)
    triples.feed(b'<a> <p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    triples.finish()
    group_triples(triples.triples, dictionary)
    if has("tables"):
        _read_columns(dictionary)
    read_nothing(dictionary)
    dictionary.reserve(_MANY_TERMS)
    dictionary.find(IRI("a"))
    dictionary.encode_integers(np.arange(2))
    dictionary.texts(np.zeros(1, np.int32))
    fingerprints(dictionary)
    _reclaim(dictionary)
    _arrange()


def _read_columns(dictionary: Dictionary) -> None:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    from zodiacedge.engine.embedded.ingest.tables.arrow_columns import rows_of_batch  # noqa: PLC0415 - as above

    rows_of_batch(dictionary, pa.record_batch([pa.array(["<a>"])], ["a"]))


def _reclaim(dictionary: Dictionary) -> None:
    dictionary.encode(IRI("a" * _LONG_TEXT))
    dictionary.begin_marking()
    dictionary.mark(np.zeros(1, np.int32))
    dictionary.sweep(0, dictionary.begin_sweep())
    dictionary.end_marking()
    dictionary.trim()


def _arrange() -> None:
    one = np.zeros(1, np.int64)
    run = Run.of(one, one, np.zeros(1, np.int32), np.ones(1, np.int32))
    arrangement = Arrangement().changed(run).changed(run)
    arrangement.weights(one)
    arrangement.weights_of(run)
    arrangement.select(one, one + 1)


def _use_tables() -> None:
    rows = np.arange(60, dtype=np.int32).reshape(-1, 2)
    table, marked = Table(2), Table(2)
    table.insert(rows)
    table.ensure_index(1)
    table.delete(rows[:3])
    table.filter(rows, present=True)
    table.mask(rows)
    table.positions(rows)
    table.contains([6, 7])
    table.count_pairs_present(rows)
    count_terms([[Table.of(rows[:, :1])]], 64)
    count_distinct([Table.of(rows[:, :1]), Table.of(rows[:3, :1])])
    table.reserve(_MANY_TERMS)
    marked.mark(64)
    marked.insert_unmarked(rows)
    # No nodes to search from: it is compiled all the same.
    reach(MEMORY.address(words(16)), 0, 0, 0, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
