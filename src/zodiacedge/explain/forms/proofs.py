"""The outline of a proof: a fact, the rule that derives it with its values, and what the rule needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import counted
from zodiacedge.explain.forms.lines import OutlineLine, Piece
from zodiacedge.explain.forms.words import code, quiet
from zodiacedge.explain.proof import AggregatePremise, Explicit, FactPremise, Step, Unexplained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.explain.forms.lines import RuleNames
    from zodiacedge.explain.forms.words import Words
    from zodiacedge.explain.proof import AggregateRow, Premise, Proof
    from zodiacedge.language.ast import Fact


class _FactAhead(NamedTuple):
    fact: Fact


class _RowAhead(NamedTuple):
    # The group is the same in all rows, so they do not repeat it.
    aggregate: AggregatePremise
    row: AggregateRow


class _Ahead(NamedTuple):
    """A line to come: its level, the number of facts above it, and what it shows."""

    level: int
    depth: int
    item: _FactAhead | _RowAhead | Premise


class ProofLines:
    """The lines of the facts of a proof; a derived fact is shown in full once."""

    def __init__(self, proof: Proof, words: Words, names: RuleNames, scope: object = None) -> None:
        """Begin; several proofs of one answer have scopes of their own."""
        self._proof = proof
        self._words = words
        self._names = names
        self._scope = scope
        self._shown: set[Fact] = set()
        self._later: dict[Fact, None] = {}

    def lines(
        self, level: int = 0, depth: int | None = None, longest: int | None = None
    ) -> Iterator[OutlineLine]:
        """Yield the lines of the facts that were asked.

        Args:
            level: The level of their lines.
            depth: Derived facts at this depth are folded.
            longest: Derived facts at this depth are only named, and shown after the others.
        """
        facts = list(self._proof.facts)
        while facts:
            for fact in facts:
                yield from self._from(_Ahead(level, 0, _FactAhead(fact)), depth, longest)
            facts, self._later = [fact for fact in self._later if fact not in self._shown], {}

    def _from(self, first: _Ahead, depth: int | None, longest: int | None) -> Iterator[OutlineLine]:
        waiting = [first]
        while waiting:
            level, above, item = waiting.pop()
            below: list[_Ahead] = []
            match item:
                case FactPremise(fact=fact):
                    below = [_Ahead(level, above, _FactAhead(fact))]
                case _FactAhead(fact=fact):
                    line, premises = self._fact(fact, level, above, (depth, longest))
                    yield line
                    below = [_Ahead(level + 1, above + 1, premise) for premise in premises]
                case _RowAhead(aggregate=aggregate, row=row) if len(row.premises) > 1:
                    values = self._words.values(row.values, without=aggregate.group)
                    yield OutlineLine(level, (code(values),), "holds", depth=above)
                    below = [_Ahead(level + 1, above, premise) for premise in row.premises]
                case _RowAhead(row=row):
                    below = [_Ahead(level, above, premise) for premise in row.premises]
                case AggregatePremise(shown=shown):
                    yield OutlineLine(level, self._words.premise(item), "aggregate", depth=above)
                    below = [_Ahead(level + 1, above, _RowAhead(item, row)) for row in shown]
                case _:
                    yield OutlineLine(level, self._words.premise(item), "holds", depth=above)
            waiting += reversed(below)

    def _fact(
        self, fact: Fact, level: int, above: int, limits: tuple[int | None, int | None]
    ) -> tuple[OutlineLine, tuple[Premise, ...]]:
        """Return the line of a fact, and the premises to show below it."""
        support = self._proof.supports[fact]
        written = code(self._words.atom(fact))
        if isinstance(support, Explicit):
            said = quiet(f"  {self._words.statement(support.statement)}")
            return OutlineLine(level, (written, said), "explicit", depth=above), ()
        if isinstance(support, Unexplained):
            said = quiet("  not explained: the budget ended")
            return OutlineLine(level, (written, said), "note", depth=above), ()
        anchor = (self._scope, fact)
        if fact in self._shown:
            return OutlineLine(level, (written,), "derived", refers=anchor, depth=above), ()
        depth, longest = limits
        if longest is not None and above >= longest:
            self._later[fact] = None
            return OutlineLine(level, (written,), "derived", refers=anchor, depth=above), ()
        name, pieces = self._step(support)
        if depth is not None and above >= depth and not support.rule.states_fact:
            below = len(self._proof.below(fact))
            rests = quiet(f"  … {counted(below, 'fact')} folded" if below else "  … folded")
            line = OutlineLine(
                level, (written, *pieces, rests), "derived", rule=name, folded=True, depth=above
            )
            return line, ()
        self._shown.add(fact)
        return OutlineLine(
            level, (written, *pieces), "derived", anchor=anchor, rule=name, depth=above
        ), () if support.rule.states_fact else support.premises

    def _step(self, step: Step) -> tuple[str, tuple[Piece, ...]]:
        name = self._names.name(step.key, step.rule)
        values = self._words.values(step.values)
        if step.rule.states_fact:
            return name, (quiet("  stated by "), Piece(name, "rule"))
        return name, (quiet("  by "), Piece(name, "rule"), quiet(f" with {values}" if values else ""))


def proof_notes(proof: Proof) -> Iterator[str]:
    """Yield remarks about a proof as a whole."""
    if not proof.complete:
        yield "The budget ended: not every fact is explained."
    elif not proof.least:
        yield "The budget ended: a shorter proof may exist."
    if proof.more:
        yield f"Further facts match; the first {len(proof.facts):,} are explained."
