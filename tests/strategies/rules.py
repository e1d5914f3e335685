"""One random rule, safe and stratified by construction, as text.

A rule that reads its own level may compute values only within bounds, so that no program runs for
ever: `V := N + 1, V < 5, V >= 0`. Everywhere else any expression goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from zodiacedge.language.parser import parse_rule

if TYPE_CHECKING:
    from strategies.dice import Dice
    from strategies.schema import Kind, Pred, Schema
    from zodiacedge.language.ast import Rule

_ORDERS = ("<=", "!=", "<", ">=", "!=", ">", "=")
_FOLDS = ("COUNT", "SUM", "MIN", "MAX", "AVG", "MED")


@lru_cache(maxsize=65536)
def parsed(text: str) -> Rule:
    """Return the rule of a text."""
    return parse_rule(text)


def random_rule(dice: Dice, schema: Schema) -> str:
    """Return the text of a rule for one of the schema's predicates."""
    return _Writer(dice, schema, dice.pick(schema.heads())).rule()


def random_ring(dice: Dice, preds: list[Pred]) -> list[str]:
    """Return rules that hand facts round a ring of predicates with the same columns."""
    found: list[str] = []
    for head, source in zip(preds, [*preds[1:], preds[0]], strict=True):
        columns = [f"V{n}" for n in range(len(head.kinds))]
        read = dice.shuffled(columns) if len(set(head.kinds)) == 1 else columns
        found.append(f"{head.name}({', '.join(columns)}) :- {source.name}({', '.join(read)}) .")
    return found


def random_linked_rule(dice: Dice, schema: Schema, head: Pred, source: Pred) -> str:
    """Return the text of a rule that reads a given predicate, beside the aggregate if there is one."""
    return _Writer(dice, schema, head, source=source).rule()


def random_exit_rule(dice: Dice, schema: Schema, head: Pred) -> str:
    """Return the text of a rule for a predicate that reads lower levels only."""
    return _Writer(dice, schema, head, exits=True).rule()


@dataclass(slots=True)
class _Scope:
    # The variables that a body binds, with their kinds.
    kinds: dict[str, Kind] = field(default_factory=dict)
    equated: set[str] = field(default_factory=set)
    """Bound by `V = expression`: in another bare equality they would be ambiguous."""
    recursive: bool = False
    wide: bool = False

    def of(self, kind: Kind) -> list[str]:
        return [v for v, k in self.kinds.items() if kind in {k, "any"}]


class _Writer:
    def __init__(
        self, dice: Dice, schema: Schema, head: Pred, *, exits: bool = False, source: Pred | None = None
    ) -> None:
        self.dice = dice
        self.schema = schema
        self.profile = schema.profile
        self.head = head
        self.highest = head.level - exits
        self.source = source
        self.count = 0

    def rule(self) -> str:
        dice, head = self.dice, self.head
        scope = _Scope()
        if head.aggregated:
            body = self._aggregate_body(scope)
        else:
            closure = "" if self.highest < head.level or self.source else self._closure()
            if closure:
                return closure
            if not self.source and dice.chance(6):
                body = self._extras(scope, head.level - 1, least_bindings=1)
            else:
                body = self._source_atom(scope)
                body += self._atoms(scope, self.highest, 1 + dice.amount(4, 4, 2) - len(body))
                body += self._extras(scope, head.level - 1)
            body = dice.shuffled(body)
        return f"{self._head(scope)} :- {', '.join(body)} ."

    # Shapes that occur in practice, and that engines have modules for

    def _closure(self) -> str:
        dice, head = self.dice, self.head
        kinds = head.kinds
        if len(kinds) != 2 or kinds[0] != kinds[1] or not dice.chance(30):
            return ""
        p = head.name
        alike = [q.name for q in self.schema.readable(head.level) if q.kinds == kinds and q != head]
        shape = dice.number(0, 5)
        if shape == 5 and alike:
            return f"{p}(X, Y) :- {dice.pick(alike)}({'X, Y' if dice.chance(70) else 'Y, X'}) ."
        if shape == 4 and alike:
            return f"{p}(X, Y) :- {p}(X, Z), {dice.pick(alike)}(Z, Y) ."
        if shape == 3:
            return f"{p}(X, Y) :- {p}(Y, X) ."
        guard = ", X != Y" if shape else ""
        return f"{p}(X, Y) :- {p}(X, Z), {p}(Z, Y){guard} ."

    # Heads

    def _head(self, scope: _Scope) -> str:
        dice, head = self.dice, self.head
        name, kinds = head.name, head.kinds
        if len(kinds) == 1 and self.schema.class_level and scope.of("class") and dice.chance(45):
            name, kinds = "rdf:type", (kinds[0], "class")
        args: list[str] = []
        for kind in kinds:
            args.append(self._head_argument(scope, kind, args))
        return f"{name}({', '.join(args)})"

    def _head_argument(self, scope: _Scope, kind: Kind, used: list[str]) -> str:
        dice = self.dice
        options = scope.of(kind)
        if kind != "class" and self.profile.mistakes and dice.chance(4):
            options = list(scope.kinds)
        unused = [v for v in options if v not in used]
        if unused and not dice.chance(10):
            options = unused
        if options and (kind == "class" or not dice.chance(7)):
            return dice.pick(options)
        return dice.pick(self.schema.constants(kind))

    # Atoms

    def _fresh(self, stem: str = "V") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def _source_atom(self, scope: _Scope) -> list[str]:
        return [self._atom(scope, self.highest, self.source)] if self.source else []

    def _atoms(self, scope: _Scope, level: int, count: int) -> list[str]:
        return [self._atom(scope, level) for _ in range(min(count, self.profile.most_atoms))]

    def _atom(self, scope: _Scope, level: int, wanted: Pred | None = None) -> str:
        dice, schema = self.dice, self.schema
        if wanted:
            name, kinds, at = wanted.name, wanted.kinds, wanted.level
        elif schema.class_level is not None and level >= schema.class_level and dice.chance(25):
            name, kinds, at = "rdf:type", ("node", "class"), schema.class_level
        else:
            options = schema.readable(level)
            if scope.wide:
                # Joins of wide predicates would make the slow evaluators too slow.
                options = tuple(p for p in options if len(p.kinds) < 3)
            same = [p for p in options if p.level == self.head.level]
            chosen = dice.pick(same) if same and dice.chance(60) else dice.pick(options)
            name, kinds, at = chosen.name, chosen.kinds, chosen.level
        scope.recursive |= at == self.head.level
        scope.wide |= len(kinds) > 2
        args: list[str] = []
        for kind in kinds:
            args.append(self._argument(scope, args, kind))
        if scope.kinds and not scope.kinds.keys() & set(args) and not dice.chance(8):
            # A join rather than a product.
            places = [n for n, kind in enumerate(kinds) if _fitting(scope.kinds, kind)]
            if places:
                place = dice.pick(places)
                args[place] = dice.pick(_fitting(scope.kinds, kinds[place]))
        for kind, arg in zip(kinds, args, strict=True):
            if arg[0] == "V":
                scope.kinds.setdefault(arg, kind)
        return f"{name}({', '.join(args)})"

    def _argument(self, scope: _Scope, others: list[str], kind: Kind) -> str:
        dice = self.dice
        what = dice.amount(46, 38, 5, 8, 3)
        options = [v for v in _fitting(scope.kinds, kind) if v not in others]
        if self.profile.mistakes and scope.kinds and dice.chance(3):
            options = list(scope.kinds)
        if what == 0 and options:
            return dice.pick(options)
        if what == 2:
            return dice.pick(self.schema.constants(kind))
        if what == 3:
            return "_"
        if what == 4 and others and others[-1][0] == "V":
            return others[-1]
        return self._fresh()

    # Negation, comparisons and bindings

    def _extras(self, scope: _Scope, negated_level: int, least_bindings: int = 0) -> list[str]:
        dice = self.dice
        found: list[str] = []
        for _ in range(max(least_bindings, dice.amount(68, 26, 6))):
            found += self._binding(scope)
        found += [self._negation(scope, negated_level) for _ in range(dice.amount(54, 38, 8))]
        if scope.kinds:
            found += [self._comparison(scope) for _ in range(dice.amount(66, 28, 6))]
        return found

    def _negation(self, scope: _Scope, level: int) -> str:
        dice, schema = self.dice, self.schema
        if schema.class_level is not None and level >= schema.class_level and dice.chance(25):
            return f"not rdf:type({self._denied(scope, 'node')}, {self._denied(scope, 'class')})"
        options = schema.readable(level)
        derived = [p for p in options if p.level]
        chosen = dice.pick(derived) if derived and dice.chance(50) else dice.pick(options)
        args: list[str] = []
        for kind in chosen.kinds:
            own = [a for a in args if a[0] == "E"]
            args.append(own[0] if own and dice.chance(10) else self._denied(scope, kind))
        places = [n for n, kind in enumerate(chosen.kinds) if scope.of(kind)]
        if places and not set(args) & scope.kinds.keys() and not dice.chance(15):
            place = dice.pick(places)
            args[place] = dice.pick(scope.of(chosen.kinds[place]))
        return f"not {chosen.name}({', '.join(args)})"

    def _denied(self, scope: _Scope, kind: Kind) -> str:
        dice = self.dice
        options = scope.of(kind)
        what = dice.amount(64, 20, 10, 6)
        if what == 0 and options:
            return dice.pick(options)
        if what == 2:
            return "_"
        if what == 3:
            return dice.pick(self.schema.constants(kind))
        return self._fresh("E")

    def _comparison(self, scope: _Scope) -> str:
        dice = self.dice
        variable = dice.pick(list(scope.kinds))
        kind = scope.kinds[variable]
        if kind == "num":
            left, right = variable, self._number(scope)
            if dice.chance(15):
                left = self._expression(scope)
        else:
            left, right = variable, dice.pick([*self.schema.constants(kind), *scope.of(kind)])
        ordered = kind in {"num", "text"} or (self.profile.mistakes and dice.chance(12))
        sign = dice.pick(_ORDERS if ordered else ("!=", "!=", "!=", "="))
        if left == right and not dice.chance(10):
            right = dice.pick(self.schema.constants(kind))
        if sign == "=" and scope.equated & {left, right}:
            sign = "!="
        return f"COMP({left}, {sign}, {right})" if dice.chance(20) else f"{left} {sign} {right}"

    def _number(self, scope: _Scope) -> str:
        dice = self.dice
        numbers = scope.of("num")
        if self.profile.mistakes and scope.kinds and dice.chance(8):
            numbers = [v for v in scope.kinds if v not in scope.equated]
        if numbers and dice.chance(50):
            return dice.pick(numbers)
        return dice.pick(self.profile.numbers)

    def _binding(self, scope: _Scope) -> list[str]:
        dice = self.dice
        bound: list[str] = []
        kind: Kind = "num"
        texts = scope.of("text")
        numbers = scope.of("num")
        made = self._fresh()
        if self.profile.integers_only or scope.recursive:
            value = self._bounded(scope) if not self.profile.integers_only else self._expression(scope)
            top = 5 if scope.recursive else 50
            bound = [f"{made} < {top}", f"{made} >= 0"]
        elif texts and (not numbers or dice.chance(30)):
            value, kind = self._text_expression(dice.pick(texts))
        elif scope.kinds and not numbers and dice.chance(40):
            # A plain copy, whatever it is; of what an equality binds, it is a chain of equalities.
            original = dice.pick(list(scope.kinds))
            value, kind = original, scope.kinds.get(original, "num")
        else:
            value = self._expression(scope)
        scope.kinds[made] = kind
        how = dice.number(0, 3)
        if how >= 2:
            scope.equated.add(made)
        binding = (f"{made} := {value}", f"BIND({value} AS {made})", f"{made} = {value}", f"{value} = {made}")
        return [binding[how], *bound]

    def _bounded(self, scope: _Scope) -> str:
        a, b = self._number(scope), self._number(scope)
        # Wholly new fractions must not arise: steps by whole numbers, or rounded to one.
        return self.dice.pick((f"{a} + 1", f"{a} - 1", f"floor({a} + {b})", f"round({a} / 2)", f"{a} + 2"))

    def _expression(self, scope: _Scope) -> str:
        dice = self.dice
        a, b = self._number(scope), self._number(scope)
        forms = [f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} * 2 - {b}", f"({a} + 1) * {b}"]
        if not self.profile.integers_only:
            forms += [
                f"{a} / {b}",
                f"{a} div {b}",
                f"{a} % {b}",
                f"{a} ** 2",
                f"-{a} + {b}",
                f"abs({a} - {b})",
            ]
            forms += [
                f"min({a}, {b})",
                f"max({a}, {b})",
                f"floor({a} / 2)",
                f"round({a} * 0.5)",
                f"ceil({a})",
            ]
            forms += [
                f"sqrt({a})",
                f"num(str({a}))",
                f"coalesce({a} / {b}, {b})",
                f"if({a}, {b} - 1, {a} / 0)",
            ]
        return dice.pick(forms)

    def _text_expression(self, text: str) -> tuple[str, Kind]:
        forms: tuple[tuple[str, Kind], ...] = (
            (f"strlen({text})", "num"),
            (f'concat({text}, "y")', "text"),
            (f"upper({text})", "text"),
            (f"substr({text}, 1, 1)", "text"),
            (f'contains({text}, "a")', "any"),
            (f'replace({text}, "a", "b")', "text"),
            (f'strafter({text}, "a")', "text"),
            (f'if(regex({text}, "^[^x]"), lang({text}), {text})', "text"),
        )
        return self.dice.pick(forms)

    # Aggregates

    def _aggregate_body(self, scope: _Scope) -> list[str]:
        dice, below = self.dice, self.head.level - 1
        inner = _Scope()
        inside = self._atoms(inner, below, 1 + dice.amount(5, 4, 1))
        numeric = [p for p in self.schema.readable(below) if "num" in p.kinds and len(p.kinds) < 3]
        if numeric and not inner.of("num") and dice.chance(60):
            inside.append(self._atom(inner, below, dice.pick(numeric)))
        if not inner.kinds:
            inside += self._binding(inner)
        inside += self._extras(inner, below)
        groups = dice.shuffled(list(inner.kinds))[: dice.amount(25, 50, 25)]
        folds: list[str] = []
        results: list[str] = []
        for _ in range(1 + dice.amount(75, 25)):
            numbers = inner.of("num")
            op = dice.pick(_FOLDS if numbers or dice.chance(10) else ("COUNT", "MIN", "MAX"))
            wants_number = (
                numbers and (op in {"SUM", "AVG", "MED"} or dice.chance(40)) and not dice.chance(10)
            )
            argument = dice.pick(numbers if wants_number else list(inner.kinds))
            target = self._fresh()
            distinct = "DISTINCT " if dice.chance(25) else ""
            folds.append(f"{op}({distinct}{argument}) AS {target}")
            results.append(target)
            scope.kinds[target] = inner.kinds[argument] if op in {"MIN", "MAX"} else "num"
        scope.kinds.update((v, inner.kinds[v]) for v in groups)
        beside = self._source_atom(scope)
        beside += self._atoms(scope, self.highest, dice.amount(38, 52, 10))
        beside += self._extras(scope, below) if dice.chance(50) else []
        hidden = [v for v in inner.kinds if v not in groups]
        fresh = [v for v in scope.kinds if v not in groups and v not in results]
        on = f" ON {', '.join(groups)}" if groups else ""
        written = f"AGGREGATE({', '.join(dice.shuffled(inside))}){on} WITH {', '.join(folds)}"
        if hidden and fresh and dice.chance(15):
            # The same name inside and outside, yet two variables.
            alias = dice.pick(hidden)
            renamed = {fresh[0]: alias}
            beside = [_renamed(text, renamed) for text in beside]
            scope.kinds[alias] = scope.kinds.pop(fresh[0])
        return [*dice.shuffled(beside), written]


def _fitting(kinds: dict[str, Kind], kind: Kind) -> list[str]:
    return [v for v, k in kinds.items() if k == kind]


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(f"{old},", f"{new},").replace(f"{old})", f"{new})").replace(f"{old} ", f"{new} ")
        if text.endswith(old):
            text = text.removesuffix(old) + new
    return text
