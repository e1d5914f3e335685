"""Many small changes, one after the other, on a knowledge base that lives on.

Each change is taken back by the next one: what the second reports must be the opposite of what the first
reported, and in the end every table must hold what an evaluation from nothing gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

import numpy as np

from zodiacedge.engine.embedded.storage.relation import NO_CLASS, Relation
from zodiacedge.language.ast import Fact
from zodiacedge.language.printer import format_rule
from zodiacedge.terms import IRI, RDF_TYPE, Literal, integer
from zodiacedge.workloads import churn
from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.measure.embedded import EmbeddedTrial, Loaded
from zodiacedge_bench.measure.fingerprint import fingerprint
from zodiacedge_bench.measure.harness import Expected, WrongCountError
from zodiacedge_bench.measure.latency import Latencies
from zodiacedge_bench.measure.live import knowledge_base, store_of
from zodiacedge_bench.measure.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.terms import Term
    from zodiacedge_bench.changes.edits import Committed
    from zodiacedge_bench.measure.harness import Run

    Tell = Callable[[str], None]

MOST_CONSEQUENCES = 20
"""A fact from which more follows is no small change."""
_SEED = 7
_TURBINES = 4
# After so many times the changes that are asked for, facts with few consequences are too rare to go on.
_MOST_DRAWS = 20
_NOTES = 10


class Draw(Protocol):
    """Picks a fact, and says whether it is there: then it goes first, else it comes first."""

    def __call__(self, random: Random) -> tuple[Fact, bool]:
        """Return a fact and whether it is explicit."""


def copies_task(copies: int) -> Task:
    """Return renamed copies of the paper's rule set 2, each on data of its own."""
    return Task(
        f"{copies * churn.RULES_PER_COPY:,} rules",
        churn.copied_rules(copies),
        lambda: churn.copied_facts(copies, _TURBINES),
        Expected(),
    )


def links_task(nodes: int, watched: int) -> Task:
    """Return a few rules that read one relation with ten facts per node."""

    def load() -> Loaded:
        terms: tuple[Term, ...] = (*map(integer, range(nodes)), IRI("watched"))
        return Loaded(
            terms,
            {
                Relation("link", 2): churn.links(nodes).astype(np.int32),
                Relation(RDF_TYPE, 1, nodes): churn.watched(nodes, watched).astype(np.int32).reshape(-1, 1),
            },
        )

    name = f"{nodes * churn.LINKS_PER_NODE:,} links"
    return Task(name, churn.link_rules(), list, Expected(), make_loaded=load)


def churn_rules(task: Task, changes: int, tell: Tell) -> list[Latencies]:
    """Take a rule out, picked at random, and put it in again, many times."""
    random = Random(_SEED)
    live = _Live(task, tell)
    gone: list[Run] = []
    back: list[Run] = []
    for number in range(changes):
        live.note(number, changes)
        rule = random.choice(task.program)
        first, second = live.there_and_back(
            f"rule {rule.label}", Edit(remove_rules=(rule.label or "",)), Edit(add_rules=format_rule(rule))
        )
        gone.append(first.run)
        back.append(second.run)
    live.check()
    return [
        *Latencies(task.name, "rule out", tuple(gone)).by_age(),
        *Latencies(task.name, "rule in", tuple(back)).by_age(),
    ]


def churn_facts(task: Task, draws: Mapping[str, Draw], changes: int, tell: Tell) -> list[Latencies]:
    """Take facts out and put them in again, or the other way round; those with few consequences count.

    Args:
        task: What is changed.
        draws: Picks facts of each kind, by its name.
        changes: How many facts of each kind.
        tell: Called with what is going on.
    """
    random = Random(_SEED)
    live = _Live(task, tell)
    found = [one for kind, draw in draws.items() for one in _churn_kind(live, kind, draw, changes, random)]
    live.check()
    return found


def _churn_kind(live: _Live, kind: str, draw: Draw, changes: int, random: Random) -> Iterator[Latencies]:
    gone: list[Run] = []
    came: list[Run] = []
    left_out = 0
    for _ in range(changes * _MOST_DRAWS):
        if len(gone) == changes:
            break
        live.note(len(gone), changes)
        fact, there = draw(random)
        out, into = Edit(remove_facts=(fact,)), Edit(add_facts=(fact,))
        first, second = live.there_and_back(str(fact), *((out, into) if there else (into, out)))
        if first.touched - 1 > MOST_CONSEQUENCES:
            left_out += 1
            continue
        gone.append((first if there else second).run)
        came.append((second if there else first).run)
    if len(gone) < changes:
        raise WrongCountError(f"{live.name}: few facts have at most {MOST_CONSEQUENCES} consequences")
    yield from Latencies(live.name, f"{kind} out", tuple(gone), left_out).by_age()
    yield from Latencies(live.name, f"{kind} in", tuple(came), left_out).by_age()


@dataclass(frozen=True, slots=True)
class AnyFact:
    """Picks any explicit fact, or one that is not there: it has a new name, or another fact's, at its end."""

    loaded: Loaded

    def __call__(self, random: Random) -> tuple[Fact, bool]:
        """Return a fact and whether it is explicit."""
        relations = list(self.loaded.rows)
        (relation,) = random.choices(relations, [len(self.loaded.rows[one]) for one in relations])
        rows = self.loaded.rows[relation]
        row = rows[random.randrange(len(rows))]
        if random.random() < 1 / 2:
            return fact_of(self.loaded, relation, row), True
        other = row.copy()
        other[-1] = rows[random.randrange(len(rows)), -1]
        if not (rows == other).all(axis=1).any():
            return fact_of(self.loaded, relation, other), False
        known = fact_of(self.loaded, relation, row)
        at = relation.arity - 1
        new = Literal(f"new{random.randrange(10**9)}")
        return Fact(known.relation, (*known.args[:at], new, *known.args[at + 1 :])), False


@dataclass(frozen=True, slots=True)
class AnyLink:
    """Picks a link of one of some nodes; every other time one that is not there."""

    loaded: Loaded
    nodes: int
    """How many there are."""
    some: Sequence[int]

    def __call__(self, random: Random) -> tuple[Fact, bool]:
        """Return a fact and whether it is explicit."""
        relation = Relation("link", 2)
        node = int(random.choice(self.some))
        links = self.loaded.rows[relation]
        own = links[churn.LINKS_PER_NODE * node : churn.LINKS_PER_NODE * (node + 1)]
        if random.random() < 1 / 2:
            return fact_of(self.loaded, relation, own[random.randrange(len(own))]), True
        far = random.choice(
            sorted({random.randrange(self.nodes) for _ in range(2 * len(own))} - {*own[:, 1]})
        )
        return fact_of(self.loaded, relation, np.array([node, far])), False


def links_drawn(task: Task, nodes: int, watched: int) -> dict[str, Draw]:
    """Return what picks links: of any node, and of those that most rules ask about."""
    return {
        "fact": AnyLink(task.loaded, nodes, range(nodes)),
        "fact of a watched node": AnyLink(task.loaded, nodes, churn.watched(nodes, watched).tolist()),
    }


def fact_of(loaded: Loaded, relation: Relation, row: NDArray[np.int32]) -> Fact:
    """Return a row of a relation as a fact."""
    member_of = () if relation.member_of == NO_CLASS else (loaded.terms[relation.member_of],)
    return Fact(relation.name, (*(loaded.terms[number] for number in row), *member_of))


class _Live:
    # A knowledge base under churn, and what it must hold when all is back.
    def __init__(self, task: Task, tell: Tell) -> None:
        self._task = task
        self._tell = tell
        self.name = task.name
        tell(f"{task.name}: loading")
        self._kb: KnowledgeBase = knowledge_base(task, modules=True)

    def note(self, done: int, changes: int) -> None:
        if done % max(changes // _NOTES, 1) == 0:
            self._tell(f"{self._task.name}: {done:,} of {changes:,} changes and back")

    def there_and_back(self, what: str, there: Edit, back: Edit) -> tuple[Committed, Committed]:
        first, second = there.commit(self._kb), back.commit(self._kb)
        if (first.came, first.went) != (second.went, second.came):
            raise WrongCountError(f"{self._task.name}: what came of {what} did not go again")
        return first, second

    def check(self) -> None:
        self._tell(f"{self._task.name}: from nothing, to compare")
        task = self._task
        fresh = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=True)
        fresh.work()
        kept = fingerprint(store_of(self._kb), task.loaded)
        kept.check(f"{task.name}, after all changes", fingerprint(fresh.store, task.loaded))
