"""Rules and facts in the syntax of other Datalog engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.language.ast import Aggregate, Atom, Comparison, Negation, Variable
from zodiacedge.terms import Literal
from zodiacedge_bench.peers.portable import arguments, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Conjunct, Expression, Rule
    from zodiacedge_bench.peers.portable import Portable


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of a rule language, where it differs between engines."""

    variable: str
    """The prefix of variables."""
    negation: str
    count: Callable[[Dialect, Rule, Aggregate], str] | None = None
    """Writes a rule with a count."""
    signs: Mapping[str, str] = field(default_factory=dict)
    """Comparisons that are written differently."""

    def facts(self, program: Portable) -> Iterator[str]:
        """Yield a line per fact."""
        for predicate, rows in program.facts.items():
            start = f"{name_of(predicate)}("
            for row in rows.tolist():
                yield f"{start}{', '.join(map(str, row))}) ."

    def rules(self, program: Portable) -> Iterator[str]:
        """Yield a line per rule."""
        for rule in program.rules:
            aggregate = rule.aggregate
            if aggregate is None:
                yield f"{self.atom(rule.head)} :- {self.body(rule.body)} ."
            elif self.count:
                yield self.count(self, rule, aggregate)

    def atom(self, atom: Atom) -> str:
        """Return an atom."""
        return f"{name_of(atom.predicate)}({', '.join(map(self.term, arguments(atom)))})"

    def term(self, term: Expression) -> str:
        """Return a variable or a number."""
        match term:
            case Variable(name=name):
                return self.variable + "".join(c if c.isalnum() else "_" for c in name)
            case Literal(lexical=lexical):
                return lexical
        message = f"no such expression in portable programs: {term}"
        raise NotImplementedError(message)

    def body(self, body: Iterable[Conjunct]) -> str:
        """Return a body."""
        return ", ".join(map(self._conjunct, body))

    def _conjunct(self, conjunct: Conjunct) -> str:
        match conjunct:
            case Atom():
                return self.atom(conjunct)
            case Negation(atom=atom):
                return f"{self.negation}{self.atom(atom)}"
            case Comparison(left=left, operator=sign, right=right):
                return f"{self.term(left)} {self.signs.get(sign, sign)} {self.term(right)}"
        message = f"no such conjunct in portable programs: {conjunct}"
        raise NotImplementedError(message)
