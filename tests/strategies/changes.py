"""Random changes: rules and facts in and out, mixed in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from strategies.dice import Dice, Drawn
from strategies.evaluation import keyed
from strategies.programs import RandomProgram, random_fact, random_program, without_rivals
from strategies.rules import parsed, random_rule
from strategies.schema import FULL, Profile
from zodiacedge.language.printer import format_atom, format_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.vendor.pretty import RepresentationPrinter

    from zodiacedge.language.ast import Fact, Rule


@dataclass(frozen=True, slots=True)
class RandomChange:
    """One transaction. Where something stands in both lists, addition wins."""

    add_rules: tuple[Rule, ...] = ()
    remove_rules: tuple[Rule, ...] = ()
    add_facts: tuple[Fact, ...] = ()
    remove_facts: tuple[Fact, ...] = ()

    def __repr__(self) -> str:
        """Show the change as a session file would write it."""
        lines = [f"- {format_rule(r)}" for r in self.remove_rules]
        lines += [f"+ {format_rule(r)}" for r in self.add_rules]
        lines += [f"- {format_atom(f)} ." for f in self.remove_facts]
        lines += [f"+ {format_atom(f)} ." for f in self.add_facts]
        return "\n".join(["RandomChange:", *lines])

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:  # noqa: FBT001
        printer.text(repr(self))


@dataclass(frozen=True, slots=True)
class RandomSession:
    """A program and the changes that follow it, each legal where it stands."""

    program: RandomProgram
    changes: tuple[RandomChange, ...]

    def __repr__(self) -> str:
        """Show the program and the changes as text."""
        return "\n".join(map(repr, (self.program, *self.changes)))

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:  # noqa: FBT001
        printer.text(repr(self))

    def states(self) -> tuple[RandomProgram, ...]:
        """The program before the first change and after each."""
        found = [self.program]
        for change in self.changes:
            found.append(apply_change(found[-1], change))
        return tuple(found)


def apply_change(program: RandomProgram, change: RandomChange) -> RandomProgram:
    """Return the program after a change: (what is there without what is removed) with what is added."""
    gone = keyed(change.remove_rules).keys()
    rules = {key: rule for key, rule in keyed(program.rules).items() if key not in gone}
    rules |= keyed(change.add_rules)
    facts = dict.fromkeys(f for f in program.facts if f not in set(change.remove_facts))
    facts |= dict.fromkeys(change.add_facts)
    return RandomProgram(tuple(rules.values()), tuple(facts), program.schema)


def random_change(dice: Dice, program: RandomProgram, seen: Iterable[Rule] = ()) -> RandomChange:
    """Return a change of a program; rules that were `seen` before may come back."""
    schema = program.schema
    what = dice.number(0, 3)
    rules_move, facts_move = what != 1, what != 0
    add_rules: list[Rule] = []
    remove_rules: list[Rule] = []
    add_facts: list[Fact] = []
    remove_facts: list[Fact] = []
    if rules_move:
        present = keyed(program.rules)
        away = [rule for key, rule in keyed(seen).items() if key not in present]
        for _ in range(dice.amount(30, 40, 30)):
            again = dice.number(0, 9)
            if again >= 8 and program.rules:
                add_rules.append(dice.pick(program.rules))
            elif again >= 4 and away:
                add_rules.append(dice.pick(away))
            else:
                add_rules.append(parsed(random_rule(dice, schema)))
        for _ in range(dice.amount(30, 45, 25)):
            if program.rules and not dice.chance(8):
                remove_rules.append(dice.pick(program.rules))
            else:
                remove_rules.append(parsed(random_rule(dice, schema)))
    if facts_move:
        stated = [p for p in schema.preds if not p.aggregated]
        for _ in range(dice.amount(30, 35, 20, 15)):
            if program.facts and dice.chance(12):
                add_facts.append(dice.pick(program.facts))
            else:
                add_facts.append(random_fact(dice, schema, dice.pick(stated)))
        for _ in range(dice.amount(30, 35, 20, 15)):
            if program.facts and not dice.chance(15):
                remove_facts.append(dice.pick(program.facts))
            else:
                remove_facts.append(random_fact(dice, schema, dice.pick(stated)))
    added = without_rivals(add_rules)
    rivals = {rule.head.predicate for rule in added if rule.aggregate}
    remove_rules += [r for r in program.rules if r.aggregate and r.head.predicate in rivals]
    return RandomChange(added, tuple(remove_rules), tuple(add_facts), tuple(remove_facts))


def random_session(dice: Dice, profile: Profile = FULL, most_changes: int = 6) -> RandomSession:
    """Return a program and changes."""
    program = current = random_program(dice, profile)
    seen = list(program.rules)
    changes: list[RandomChange] = []
    for _ in range(dice.number(1, most_changes)):
        change = random_change(dice, current, seen)
        current = apply_change(current, change)
        seen += change.add_rules
        changes.append(change)
    return RandomSession(program, tuple(changes))


@st.composite
def sessions(draw: st.DrawFn, profile: Profile = FULL, most_changes: int = 6) -> RandomSession:
    """Draw programs with changes."""
    return random_session(Drawn(draw), profile, most_changes)
