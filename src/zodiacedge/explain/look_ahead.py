"""The facts that proofs may lean on and that share a term with what is asked, as patterns.

Rules are followed backward from what is asked: the terms of a head go into the atoms of the body, other
variables stay free. An atom without such a term is left out, because all its facts would match. Where a
lookup is a job, the facts of all these patterns are fetched together.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from zodiacedge.language.ast import Aggregate, Atom, Negation, Variable
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from zodiacedge.explain.instances import LookupRule
    from zodiacedge.language.ast import Argument, Conjunct, Fact
    from zodiacedge.terms import Term

# Of a program with very many rules only the nearest are followed.
_MOST_PATTERNS = 2000


def patterns_about(
    asked: Iterable[Atom | Fact], deriving: Callable[[Atom], Iterable[LookupRule]]
) -> list[Atom]:
    """Return patterns of what is asked and of what its proofs may need, nearest first.

    Args:
        asked: Facts and patterns of facts.
        deriving: Returns the rules whose heads match a pattern.
    """
    found: dict[Atom, None] = {}
    waiting = deque(Atom(atom.relation, _unnamed(atom.args)) for atom in asked)
    while waiting and len(found) < _MOST_PATTERNS:
        atom = waiting.popleft()
        if atom in found or all(isinstance(arg, Variable) for arg in _own(atom)):
            continue
        found[atom] = None
        for shape in deriving(atom):
            values = _given(shape.rule.head, atom)
            if values:
                waiting.extend(_about(shape.rule.body, values))
    return list(found)


def _given(head: Atom, atom: Atom) -> dict[Variable, Term]:
    """Return the values that an atom gives to the variables of a head."""
    pairs = zip(head.args, atom.args, strict=True)
    return {v: term for v, term in pairs if isinstance(v, Variable) and not isinstance(term, Variable)}


def _about(body: Iterable[Conjunct], values: Mapping[Variable, Term]) -> Iterator[Atom]:
    """Yield the atoms of a body that have one of the values, with the values filled in."""
    for conjunct in body:
        match conjunct:
            case Aggregate():
                # Only the values of its groups are the same variables inside.
                yield from _about(conjunct.body, {v: values[v] for v in conjunct.groups if v in values})
            case Atom() | Negation():
                atom = conjunct.atom if isinstance(conjunct, Negation) else conjunct
                if any(isinstance(arg, Variable) and arg in values for arg in _own(atom)):
                    args = tuple(values.get(a, a) if isinstance(a, Variable) else a for a in atom.args)
                    yield Atom(atom.relation, _unnamed(args))


def _own(atom: Atom) -> tuple[Argument, ...]:
    """Return the arguments that few facts share: not a class."""
    return atom.args[:1] if atom.relation == RDF_TYPE else atom.args


def _unnamed(args: Iterable[Argument]) -> tuple[Argument, ...]:
    """Return arguments in which variables have no names, so that equal patterns are one."""
    return tuple(Variable(f".{n}") if isinstance(a, Variable) else a for n, a in enumerate(args))
