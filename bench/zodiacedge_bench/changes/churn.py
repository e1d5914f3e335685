"""Many small changes in sequence, on one knowledge base.

Each change is reverted by the next one, whose net change must be the opposite, and in the end all tables are
compared with an evaluation from scratch.
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
from zodiacedge_bench.changes.edits import Edit
from zodiacedge_bench.measure.embedded import EmbeddedTrial, Loaded
from zodiacedge_bench.measure.fingerprint import fingerprint
from zodiacedge_bench.measure.harness import Expected, WrongCountError
from zodiacedge_bench.measure.latency import Latencies
from zodiacedge_bench.measure.live import knowledge_base, store_of
from zodiacedge_bench.measure.task import Task
from zodiacedge_bench.workloads import churn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.terms import Term
    from zodiacedge_bench.changes.edits import Committed
    from zodiacedge_bench.measure.harness import Run

    Progress = Callable[[str], None]

MOST_CONSEQUENCES = 20
"""A fact with more consequences is not a small change."""
_SEED = 7
_TURBINES = 4
# The limit of draws per change: beyond it, facts with few consequences are too rare.
_MOST_DRAWS = 20
_NOTES = 10


class Draw(Protocol):
    """Picks a fact and says whether it is explicit: then it is deleted first, else inserted first."""

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


def churn_rules(task: Task, changes: int, progress: Progress) -> list[Latencies]:
    """Delete a random rule and insert it again, many times."""
    random = Random(_SEED)
    live = _Live(task, progress)
    deletions: list[Run] = []
    insertions: list[Run] = []
    for number in range(changes):
        live.note(number, changes)
        rule = random.choice(task.program)
        first, second = live.apply_and_revert(
            f"rule {rule.label}", Edit(remove_rules=(rule.label or "",)), Edit(add_rules=format_rule(rule))
        )
        deletions.append(first.run)
        insertions.append(second.run)
    live.check()
    return [
        *Latencies(task.name, "rule out", tuple(deletions)).by_age(),
        *Latencies(task.name, "rule in", tuple(insertions)).by_age(),
    ]


def churn_facts(task: Task, draws: Mapping[str, Draw], changes: int, progress: Progress) -> list[Latencies]:
    """Delete and insert facts, or insert and delete them; only those with few consequences count.

    Args:
        task: The program and facts to change.
        draws: Picks facts of each kind, by its name.
        changes: The number of facts of each kind.
        progress: Called with the progress as text.
    """
    random = Random(_SEED)
    live = _Live(task, progress)
    latencies = [
        latency for kind, draw in draws.items() for latency in _churn_kind(live, kind, draw, changes, random)
    ]
    live.check()
    return latencies


def _churn_kind(live: _Live, kind: str, draw: Draw, changes: int, random: Random) -> Iterator[Latencies]:
    deletions: list[Run] = []
    insertions: list[Run] = []
    left_out = 0
    for _ in range(changes * _MOST_DRAWS):
        if len(deletions) == changes:
            break
        live.note(len(deletions), changes)
        fact, explicit = draw(random)
        deletion, insertion = Edit(remove_facts=(fact,)), Edit(add_facts=(fact,))
        first, second = live.apply_and_revert(
            str(fact), *((deletion, insertion) if explicit else (insertion, deletion))
        )
        if first.changed - 1 > MOST_CONSEQUENCES:
            left_out += 1
            continue
        deletions.append((first if explicit else second).run)
        insertions.append((second if explicit else first).run)
    if len(deletions) < changes:
        raise WrongCountError(f"{live.name}: few facts have at most {MOST_CONSEQUENCES} consequences")
    yield from Latencies(live.name, f"{kind} out", tuple(deletions), left_out).by_age()
    yield from Latencies(live.name, f"{kind} in", tuple(insertions), left_out).by_age()


@dataclass(frozen=True, slots=True)
class AnyFact:
    """Picks an explicit fact or a new one, with a new last argument or that of another fact."""

    loaded: Loaded

    def __call__(self, random: Random) -> tuple[Fact, bool]:
        """Return a fact and whether it is explicit."""
        relations = list(self.loaded.rows)
        (relation,) = random.choices(relations, [len(self.loaded.rows[relation]) for relation in relations])
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
    """Picks a link of one of the candidates; every other time a new one."""

    loaded: Loaded
    nodes: int
    """The number of all nodes."""
    candidates: Sequence[int]

    def __call__(self, random: Random) -> tuple[Fact, bool]:
        """Return a fact and whether it is explicit."""
        relation = Relation("link", 2)
        node = int(random.choice(self.candidates))
        links = self.loaded.rows[relation]
        own = links[churn.LINKS_PER_NODE * node : churn.LINKS_PER_NODE * (node + 1)]
        if random.random() < 1 / 2:
            return fact_of(self.loaded, relation, own[random.randrange(len(own))]), True
        far = random.choice(
            sorted({random.randrange(self.nodes) for _ in range(2 * len(own))} - {*own[:, 1]})
        )
        return fact_of(self.loaded, relation, np.array([node, far])), False


def links_drawn(task: Task, nodes: int, watched: int) -> dict[str, Draw]:
    """Return draws of links: of any node, and of the watched nodes, which most rules read."""
    return {
        "fact": AnyLink(task.loaded, nodes, range(nodes)),
        "fact of a watched node": AnyLink(task.loaded, nodes, churn.watched(nodes, watched).tolist()),
    }


def fact_of(loaded: Loaded, relation: Relation, row: NDArray[np.int32]) -> Fact:
    """Return a row of a relation as a fact."""
    member_of = () if relation.member_of == NO_CLASS else (loaded.terms[relation.member_of],)
    return Fact(relation.name, (*(loaded.terms[number] for number in row), *member_of))


class _Live:
    # A knowledge base under churn, and its check at the end.
    def __init__(self, task: Task, progress: Progress) -> None:
        self._task = task
        self._progress = progress
        self.name = task.name
        progress(f"{task.name}: loading")
        self._kb: KnowledgeBase = knowledge_base(task, modules=True)

    def note(self, done: int, changes: int) -> None:
        if done % max(changes // _NOTES, 1) == 0:
            self._progress(f"{self._task.name}: {done:,} of {changes:,} changes and back")

    def apply_and_revert(self, subject: str, edit: Edit, reverse: Edit) -> tuple[Committed, Committed]:
        first, second = edit.commit(self._kb), reverse.commit(self._kb)
        if (first.inserted, first.deleted) != (second.deleted, second.inserted):
            raise WrongCountError(f"{self._task.name}: the net change of {subject} was not reverted")
        return first, second

    def check(self) -> None:
        self._progress(f"{self._task.name}: from scratch, to compare")
        task = self._task
        fresh = EmbeddedTrial(task.loaded.store(), task.rules, task.graph, modules=True)
        fresh.evaluate()
        actual = fingerprint(store_of(self._kb), task.loaded)
        actual.check(f"{task.name}, after all changes", fingerprint(fresh.store, task.loaded))
