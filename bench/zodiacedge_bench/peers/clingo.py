"""clingo: an answer set solver. Its grounder evaluates stratified programs completely, and is timed."""

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
    # #count is 0 for an empty group: a helper rule restricts it to groups with a member.
    inside = dict.fromkeys(v for c in aggregate.body for v in variables(c) if v not in aggregate.groups)
    members = ", ".join(map(dialect.term, inside))
    body = dialect.body(aggregate.body)
    group = ", ".join(map(dialect.term, aggregate.groups))
    target = dialect.term(aggregate.folds[0].target)
    helper = f"group_of_{dialect.atom(rule.head).partition('(')[0]}({group})"
    return (
        f"{helper} :- {body} .\n"
        f"{dialect.atom(rule.head)} :- {helper}, {target} = #count {{ {members} : {body} }} ."
    )


DIALECT = Dialect(variable="V", negation="not ", count=_count)


class Clingo:
    """The peer."""

    name = "clingo"
    aggregates = COUNT

    def version(self) -> str:
        """Return its version."""
        return installed("clingo")

    def trial(self, program: Portable) -> ClingoTrial:
        """Parse rules and facts."""
        return ClingoTrial(program)


class ClingoTrial:
    """One grounding."""

    def __init__(self, program: Portable) -> None:
        """Parse rules and facts."""
        self._program = program
        self._control: Any = import_module("clingo").Control(["--warn=none"])
        self._control.add("base", [], "\n".join([*DIALECT.facts(program), *DIALECT.rules(program)]))

    def evaluate(self) -> None:
        """Ground."""
        self._control.ground([("base", [])])

    def counts(self) -> dict[str, int]:
        """Count the atoms of each derived predicate."""
        atoms = self._control.symbolic_atoms
        return {
            predicate.name: sum(1 for _ in atoms.by_signature(name_of(predicate), predicate.arity))
            for predicate in self._program.derived
        }
