"""When two atoms can be made equal by putting terms for their variables, names told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.language.ast import Argument, Atom, Variable

if TYPE_CHECKING:
    from zodiacedge.terms import Term

_Slot = tuple[int, Variable]


def unifiable(first: Atom, second: Atom) -> bool:
    """Whether some fact is an instance of both atoms."""
    if first.relation != second.relation or len(first.args) != len(second.args):
        return False
    parent: dict[_Slot, _Slot] = {}
    held: dict[_Slot, Term] = {}

    def root(slot: _Slot) -> _Slot:
        while slot in parent:
            slot = parent[slot]
        return slot

    def hold(slot: _Slot, term: Term) -> bool:
        return held.setdefault(root(slot), term) == term

    def join(left: _Slot, right: _Slot) -> bool:
        if left == right:
            return True
        parent[left] = right
        moved = held.pop(left, None)
        return moved is None or hold(right, moved)

    def meet(a: Argument, b: Argument) -> bool:
        if isinstance(a, Variable):
            return join(root((0, a)), root((1, b))) if isinstance(b, Variable) else hold((0, a), b)
        return hold((1, b), a) if isinstance(b, Variable) else a == b

    return all(meet(a, b) for a, b in zip(first.args, second.args, strict=True))
