"""Unification of two atoms, with their variables renamed apart.

A pattern is an atom up to variable names: a relation and, per argument, a constant or the number of its
variable, so `p(X, X)` and `p(Y, Y)` are one pattern and `p(X, Y)` is another. Two patterns unify if
a fact can be an instance of both. The index of patterns is in `graph.patterns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.language.ast import Atom, Fact, Predicate, Variable, predicate_of

if TYPE_CHECKING:
    from zodiacedge.language.ast import Argument
    from zodiacedge.terms import Term


class Pattern(NamedTuple):
    """A relation with constants and numbered variables; made by `pattern_of`.

    `mask` has a bit per constant argument; `linear` means that no variable repeats.
    """

    relation: str
    args: tuple[Term | int, ...]
    mask: int
    linear: bool

    @property
    def predicate(self) -> Predicate:
        """The predicate as users write it."""
        args = tuple(Variable(f"V{arg}") if isinstance(arg, int) else arg for arg in self.args)
        return predicate_of(self.relation, args)


def pattern_of(atom: Atom | Fact) -> Pattern:
    """Return the pattern of an atom or fact."""
    numbers: dict[Argument, int] = {}
    args: list[Term | int] = []
    mask = 0
    for position, arg in enumerate(atom.args):
        if isinstance(arg, Variable):
            args.append(numbers.setdefault(arg, len(numbers)))
        else:
            args.append(arg)
            mask |= 1 << position
    linear = mask.bit_count() + len(numbers) == len(args)
    return Pattern(atom.relation, tuple(args), mask, linear)


def unify(left: Pattern, right: Pattern) -> bool:
    """Whether a fact can be an instance of both patterns, with variables renamed apart."""
    if left.relation != right.relation or len(left.args) != len(right.args):
        return False
    # Union-find over the variables of both sides; a class may be bound to one constant.
    parent: dict[tuple[int, int], tuple[int, int]] = {}
    bound: dict[tuple[int, int], Term] = {}

    def find(variable: tuple[int, int]) -> tuple[int, int]:
        while (above := parent.get(variable)) is not None:
            variable = above
        return variable

    def bind(variable: tuple[int, int], constant: Term) -> bool:
        return bound.setdefault(find(variable), constant) == constant

    for a, b in zip(left.args, right.args, strict=True):
        if isinstance(a, int):
            if isinstance(b, int):
                a_root, b_root = find((0, a)), find((1, b))
                if a_root != b_root:
                    parent[a_root] = b_root
                    if a_root in bound and not bind(b_root, bound[a_root]):
                        return False
            elif not bind((0, a), b):
                return False
        elif isinstance(b, int):
            if not bind((1, b), a):
                return False
        elif a != b:
            return False
    return True


def unifiable(first: Atom, second: Atom) -> bool:
    """Whether a fact can be an instance of both atoms."""
    if first.relation != second.relation or len(first.args) != len(second.args):
        return False
    for left, right in zip(first.args, second.args, strict=True):
        # Two different constants decide most cases.
        if not isinstance(left, Variable) and not isinstance(right, Variable) and left != right:
            return False
    return unify(pattern_of(first), pattern_of(second))
