"""Nemo: a Datalog engine in Rust, called through its Python package."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zodiacedge.language.ast import variables
from zodiacedge_bench.measure.machine import installed
from zodiacedge_bench.peers.portable import COUNT, name_of
from zodiacedge_bench.peers.spelling import Dialect

if TYPE_CHECKING:
    from zodiacedge.language.ast import Aggregate, Rule
    from zodiacedge_bench.peers.portable import Portable


def _count(dialect: Dialect, rule: Rule, aggregate: Aggregate) -> str:
    target = aggregate.folds[0].target
    inside = dict.fromkeys(v for c in aggregate.body for v in variables(c) if v not in aggregate.groups)
    count = f"#count({', '.join(map(dialect.term, inside))})"
    head = dialect.atom(rule.head).replace(dialect.term(target), count)
    return f"{head} :- {dialect.body(aggregate.body)} ."


DIALECT = Dialect(variable="?V", negation="~", count=_count)


class Nemo:
    """The peer."""

    name = "nemo"
    aggregates = COUNT

    def version(self) -> str:
        """Return its version."""
        return installed("nemo-python")

    def trial(self, program: Portable) -> NemoTrial:
        """Parse rules and facts."""
        return NemoTrial(program)


class NemoTrial:
    """One evaluation."""

    def __init__(self, program: Portable) -> None:
        """Parse rules and facts, and load the facts."""
        nemo: Any = import_module("nmo_python")
        exports = [f"@output {name_of(predicate)} ." for predicate in program.derived]
        text = "\n".join([*DIALECT.facts(program), *DIALECT.rules(program), *exports])
        self._program = program
        self._engine: Any = nemo.NemoEngine(nemo.load_string(text))

    def evaluate(self) -> None:
        """Evaluate."""
        self._engine.reason()

    def counts(self) -> dict[str, int]:
        """Count the facts of each derived predicate; its API has no count."""
        return {
            predicate.name: sum(1 for _ in self._engine.result(name_of(predicate)))
            for predicate in self._program.derived
        }
