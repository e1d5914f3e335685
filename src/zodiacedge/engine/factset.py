"""Facts as Python sets, with lookup by relation and bound arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Atom, Fact, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.terms import Term

_Row = tuple["Term", ...]
_Key = tuple[str, int, tuple[int, ...]]


class FactSet:
    """An append-only set of facts. A lookup by bound arguments builds its index at first use."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        """Start with the given facts."""
        self._rows: dict[tuple[str, int], set[_Row]] = {}
        self._indexes: dict[_Key, dict[_Row, list[_Row]]] = {}
        self._by_relation: dict[tuple[str, int], list[_Key]] = {}
        for fact in facts:
            self.add(fact)

    def __contains__(self, fact: Fact) -> bool:
        """Whether the set has a fact."""
        return fact.args in self._rows.get((fact.relation, len(fact.args)), ())

    def __iter__(self) -> Iterator[Fact]:
        """Yield all facts."""
        for (relation, _), rows in self._rows.items():
            for row in rows:
                yield Fact(relation, row)

    def add(self, fact: Fact) -> bool:
        """Add a fact; return whether it is new."""
        relation = (fact.relation, len(fact.args))
        rows = self._rows.setdefault(relation, set())
        if fact.args in rows:
            return False
        rows.add(fact.args)
        for key in self._by_relation.get(relation, ()):
            self._indexes[key].setdefault(_project(fact.args, key[2]), []).append(fact.args)
        return True

    def match(self, atom: Atom, binding: Mapping[Variable, Term]) -> Iterator[dict[Variable, Term]]:
        """Yield the extensions of a binding under which an atom is a fact of this set."""
        args = [binding.get(a, a) if isinstance(a, Variable) else a for a in atom.args]
        positions = tuple(n for n, a in enumerate(args) if not isinstance(a, Variable))
        for row in self._lookup(atom.relation, args, positions):
            extended = dict(binding)
            for arg, term in zip(args, row, strict=True):
                if isinstance(arg, Variable) and extended.setdefault(arg, term) != term:
                    break
            else:
                yield extended

    def _lookup(
        self, relation: str, args: list[Term | Variable], positions: tuple[int, ...]
    ) -> Iterable[_Row]:
        rows = self._rows.get((relation, len(args)), set())
        if not positions:
            return list(rows)
        key = (relation, len(args), positions)
        if key not in self._indexes:
            index: dict[_Row, list[_Row]] = {}
            for row in rows:
                index.setdefault(_project(row, positions), []).append(row)
            self._indexes[key] = index
            self._by_relation.setdefault(key[:2], []).append(key)
        values = tuple(a for n in positions if not isinstance(a := args[n], Variable))
        return list(self._indexes[key].get(values, ()))


def _project(row: _Row, positions: tuple[int, ...]) -> _Row:
    return tuple(row[n] for n in positions)
