"""The predicates of a random program: arity, level, and what their columns hold.

Columns have kinds, so that joins find partners and most expressions have values; the generator breaks
the kinds now and then on purpose. Where a program may hold `rdf:type` with a variable class, all
classes stand on one level, because such a head can derive any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from zodiacedge.language.ast import Atom, Variable
from zodiacedge.language.parser import parse_fact
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from strategies.dice import Dice
    from zodiacedge.terms import Term

Kind = Literal["node", "num", "text", "class", "any"]

NODES = ("a", "b", "c", "d")
TEXTS = ('"x"', '"ab"', '"x"@en')


@dataclass(frozen=True, slots=True)
class Profile:
    """What a random program may hold."""

    palettes: tuple[tuple[Kind, ...], ...] = (
        ("node", "num"),
        ("node",),
        ("node", "node", "num"),
        ("node", "num", "num", "text"),
        ("node", "node", "num", "any"),
    )
    """The kinds of columns that one program has; the first is the most frequent."""
    numbers: tuple[str, ...] = ("1", "2", "0", "1e0", "2.5e0")
    aggregates: bool = True
    variable_classes: bool = True
    integers_only: bool = False
    mistakes: bool = True
    """Whether kinds are mixed up now and then, so that bindings are dropped."""
    most_rules: int = 8
    """Beside the first rule of each predicate."""
    most_atoms: int = 3
    most_rows: int = 10
    arities: tuple[int, ...] = (4, 22, 52, 15, 7)
    """Weights of the arities 0, 1, 2, 3, 4."""


FULL = Profile()
INTEGERS = Profile(
    palettes=(("num",),),
    numbers=("1", "2", "0", "3", "4"),
    aggregates=False,
    variable_classes=False,
    integers_only=True,
    mistakes=False,
)
TINY = Profile(most_rules=4, most_rows=6, arities=(4, 28, 56, 12, 0))


@dataclass(frozen=True, slots=True)
class Pred:
    """A predicate: a class if it has one column."""

    name: str
    kinds: tuple[Kind, ...]
    level: int
    aggregated: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The predicates of a program and of everything that may be added to it."""

    profile: Profile
    preds: tuple[Pred, ...]
    nodes: int = 3
    class_level: int | None = None
    """The level of all classes, where `rdf:type` with a variable class may occur."""

    def heads(self) -> tuple[Pred, ...]:
        """The predicates that rules may define."""
        return tuple(p for p in self.preds if p.level > 0)

    def ring(self) -> list[Pred]:
        """Predicates alike on one level, if there are such."""
        return [p for p in self.preds if p.name[0] == "q"]

    def cycles(self) -> list[tuple[Pred, Pred]]:
        """Pairs on one level: a predicate that an aggregate defines, and another."""
        heads = self.heads()
        return [
            (p, q) for p in heads for q in heads if p.level == q.level and p.aggregated and not q.aggregated
        ]

    def readable(self, level: int) -> tuple[Pred, ...]:
        """The predicates that stand on a level or below."""
        return tuple(p for p in self.preds if p.level <= level)

    def level(self, atom: Atom) -> int:
        """The level of an atom's predicate."""
        if atom.relation == RDF_TYPE and isinstance(atom.args[1], Variable):
            return self.class_level or 0
        name, arity = atom.predicate
        found = (p.level for p in self.preds if p.name == name and len(p.kinds) == arity)
        return next(found, self.class_level or 0)

    def constants(self, kind: Kind) -> tuple[str, ...]:
        """The constants of a column, as a program writes them."""
        classes = tuple(p.name for p in self.preds if len(p.kinds) == 1)
        match kind:
            case "node":
                return NODES[: self.nodes]
            case "num":
                return self.profile.numbers
            case "text":
                return TEXTS
            case "class":
                return classes
            case "any":
                return ("a", "1", "true", "1.5", "_:n1", TEXTS[0], '"2024-02-29"^^xsd:date')


@lru_cache(maxsize=1024)
def term(text: str) -> Term:
    """Return the term that a program writes like this."""
    return parse_fact(f"f({text}, {text})").args[0]


def random_schema(dice: Dice, profile: Profile = FULL) -> Schema:
    """Return random predicates."""
    variable = profile.variable_classes and dice.chance(20)
    class_level = 1 + dice.number(0, 1) if variable else None
    kinds = dice.pick(profile.palettes)
    preds = [Pred("e0", (kinds[0], kinds[0]), 0)]
    base = range(1, 3 + dice.number(0, 1))
    preds += [_pred(dice, (profile, kinds), f"e{number}", 0, class_level) for number in base]
    if variable:
        preds += [Pred("sub", ("class", "class"), 0), Pred("k0", ("node",), class_level or 0)]
    for number in range(2 + dice.number(0, 3)):
        level = 1 + dice.amount(6, 3, 1)
        made = _pred(dice, (profile, kinds), f"p{number}", level, class_level)
        if profile.aggregates and dice.chance(25) and not (variable and len(made.kinds) == 1):
            made = Pred(made.name, made.kinds, made.level, aggregated=True)
        preds.append(made)
    if dice.chance(45):
        # Predicates alike on one level, for rings.
        level = 1 + dice.number(0, 1)
        columns = (kinds[0], kinds[0]) if dice.chance(70) else (kinds[0], kinds[-1], kinds[0])
        preds += [Pred(f"q{number}", columns, level) for number in range(2 + dice.number(0, 1))]
    if dice.chance(10):
        # One name, a class and a property.
        classes = [p for p in preds if len(p.kinds) == 1]
        if classes:
            preds.append(Pred(dice.pick(classes).name, (kinds[0], kinds[0]), 1))
    return Schema(profile, tuple(preds), 3 + dice.number(0, 1), class_level)


def _pred(
    dice: Dice, style: tuple[Profile, tuple[Kind, ...]], name: str, level: int, class_level: int | None
) -> Pred:
    profile, palette = style
    arity = (2, 1, 0, 3, 4)[dice.amount(*(profile.arities[n] for n in (2, 1, 0, 3, 4)))]
    if arity == 0 and level == 0:
        arity = 2
    if arity == 2 and dice.chance(35):
        # Closures need two columns alike.
        return Pred(name, (palette[0], palette[0]), level)
    kinds = tuple(dice.pick(palette) for _ in range(arity))
    return Pred(name, kinds, class_level if arity == 1 and class_level is not None else level)
