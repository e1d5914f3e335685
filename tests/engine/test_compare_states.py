"""The comparison of two states by listing facts: exact, and it holds only the facts that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from zodiacedge.engine import state_compare
from zodiacedge.engine.api import Settings, State
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine, ReferenceMaterialisation
from zodiacedge.graph.hyper_graph import HyperGraph
from zodiacedge.language.ast import Fact, Predicate, fact
from zodiacedge.terms import IRI, BlankNode, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.engine.api import Engine

# A blank node has the text of an IRI.
TERMS = (IRI("n0"), IRI("n1"), BlankNode("n0"))
FACTS = tuple(
    fact(name, *(one, other)[:arity])
    for name, arity in (("p", 2), ("q", 2), ("C", 1))
    for one in TERMS
    for other in TERMS
)
some = st.frozensets(st.sampled_from(FACTS))


def state_of(engine: Engine, facts: Iterable[Fact]) -> State:
    """Return a state with facts and no rules."""
    return engine.materialise({}, HyperGraph(), facts, Settings())


@given(some, some)
def test_engines_tell_what_is_apart(before: frozenset[Fact], after: frozenset[Fact]) -> None:
    for one, other in (
        (EmbeddedEngine(), EmbeddedEngine()),
        (ReferenceEngine(), ReferenceEngine()),
        (EmbeddedEngine(), ReferenceEngine()),
    ):
        found = state_of(one, after).diff(state_of(other, before))
        assert found == (after - before, before - after)


class Counted(Fact):
    """A fact that knows how many of its kind there are, now and at most."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, number: int) -> None:
        super().__init__("p", (IRI(f"n{number}"), integer(number)))
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def __del__(self) -> None:
        Counted.alive -= 1


@dataclass(frozen=True)
class Arriving(ReferenceMaterialisation):
    """A state whose facts are there only while somebody looks at them."""

    numbers: range = range(0)

    def each(self, rules: frozenset[str] | None = None) -> Iterator[tuple[Predicate, Iterator[Fact]]]:
        """Yield the facts."""
        del rules
        yield Predicate("p", 2), (Counted(number) for number in self.numbers)


def test_what_two_states_share_is_not_held() -> None:
    came, went = state_compare.diff(Arriving(numbers=range(5000)), Arriving(numbers=range(3, 5005)))
    assert {one.args[1] for one in came} == {integer(number) for number in range(5000, 5005)}
    assert {one.args[1] for one in went} == {integer(number) for number in range(3)}
    # One fact in 32,000 shares the share of one that differs.
    assert Counted.most <= 20
