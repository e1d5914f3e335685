"""Random programs: rules and explicit facts, with the schema they were drawn for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from strategies.dice import Dice, Drawn
from strategies.rules import parsed, random_exit_rule, random_linked_rule, random_ring, random_rule
from strategies.schema import FULL, Pred, Profile, Schema, random_schema, term
from zodiacedge.language.ast import Fact, Rule, fact
from zodiacedge.language.printer import format_atom, format_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.vendor.pretty import RepresentationPrinter


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """Rules and explicit facts; `schema` draws more of both that can stand beside them."""

    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    schema: Schema

    @property
    def text(self) -> str:
        """The program as its author would have written it."""
        return "\n".join([*map(format_rule, self.rules), *(f"{format_atom(f)} ." for f in self.facts)])

    def __repr__(self) -> str:
        """Show the text, which is what a failing test should show."""
        return f"RandomProgram:\n{self.text}\n"

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:  # noqa: FBT001
        # Hypothesis would show the tree.
        printer.text(repr(self))


def random_program(dice: Dice, profile: Profile = FULL) -> RandomProgram:
    """Return a random program."""
    schema = random_schema(dice, profile)
    texts: list[str] = []
    if schema.cycles() and dice.chance(30):
        aggregated, other = dice.pick(schema.cycles())
        texts.append(random_linked_rule(dice, schema, aggregated, other))
        texts.append(random_linked_rule(dice, schema, other, aggregated))
    texts += [random_exit_rule(dice, schema, head) for head in schema.heads() if not dice.chance(15)]
    texts += [random_rule(dice, schema) for _ in range(dice.number(1, profile.most_rules))]
    if schema.ring() and not dice.chance(25):
        texts += random_ring(dice, schema.ring())
    rules = without_rivals(map(parsed, texts))
    return RandomProgram(rules, random_facts(dice, schema), schema)


def without_rivals(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Leave out further rules for a predicate that has an aggregate rule already."""
    found: list[Rule] = []
    aggregated: set[object] = set()
    for rule in rules:
        if rule.aggregate:
            if rule.head.predicate in aggregated:
                continue
            aggregated.add(rule.head.predicate)
        found.append(rule)
    return tuple(found)


def random_facts(dice: Dice, schema: Schema) -> tuple[Fact, ...]:
    """Return explicit facts, mostly of base predicates."""
    found: dict[Fact, None] = {}
    for pred in schema.preds:
        if pred.aggregated:
            continue
        most = schema.profile.most_rows
        rows = dice.number(0, 2 * most) if pred.level == 0 else dice.amount(5, 2, 1, 1)
        for _ in range(min(rows, most)):
            found[random_fact(dice, schema, pred)] = None
    return tuple(found)


def random_fact(dice: Dice, schema: Schema, pred: Pred) -> Fact:
    """Return an explicit fact of a predicate."""
    return fact(pred.name, *(term(dice.pick(schema.constants(kind))) for kind in pred.kinds))


@st.composite
def programs(draw: st.DrawFn, profile: Profile = FULL) -> RandomProgram:
    """Draw random programs."""
    return random_program(Drawn(draw), profile)
