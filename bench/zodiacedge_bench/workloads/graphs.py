"""Programs over graphs: transitive closure, same generation, points-to analysis.

The data is random with a fixed seed. The numbers of derived facts were computed independently of our engines:
closures over strong components, generations by the levels of the tree, points-to by Boolean matrices,
closures of lines by sets of bits, and all but those of `ROUNDS` by clingo. The small workloads are for tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import default_rng

from zodiacedge.language.ast import Fact, fact
from zodiacedge.terms import IRI, Term, integer
from zodiacedge_bench.workloads.rule_files import rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Relations = Mapping[str, Rows]

SEED = 7


@dataclass(frozen=True, slots=True)
class Workload:
    """The name of a program, its data, and the number of derived facts per predicate.

    Nodes are numbers, a fact is a row of its relation.
    """

    program: str
    relations: Relations
    derived: Mapping[str, int]

    @property
    def rules(self) -> str:
        """The text of the program."""
        return rules(self.program)

    def facts(self, *, iris: bool = False) -> Iterator[Fact]:
        """Yield the facts; nodes are integers, or IRIs such as `<n17>`, which RDF needs."""
        term: Callable[[int], Term] = _node if iris else integer
        for relation, rows in self.relations.items():
            terms = {node: term(node) for node in np.unique(rows).tolist()}
            for row in rows.tolist():
                yield fact(relation, *(terms[node] for node in row))


def random_graph(nodes: int, edges: int) -> Relations:
    """Return a graph with edges between any nodes; equal edges are merged."""
    return {"edge": _pairs(default_rng(SEED), nodes, edges)}


def random_tree(nodes: int) -> Relations:
    """Return a tree where each node but the first is the child of a random earlier node."""
    children = np.arange(1, nodes)
    return {"parent": np.stack([default_rng(SEED).integers(0, children), children], axis=1)}


def random_program(variables: int, objects: int, assigns: int, heap: int) -> Relations:
    """Return the statements of a program that allocates objects and passes them around.

    Args:
        variables: The number of variables.
        objects: The number of `v = new O`, each with another variable.
        assigns: The number of `v = w`.
        heap: The number of `v = w.f`, and of `v.f = w`. The derived facts grow fast with it.
    """
    rng = default_rng(SEED)
    return {
        "alloc": np.stack([rng.permutation(variables)[:objects], np.arange(objects)], axis=1),
        "assign": _pairs(rng, variables, assigns),
        "load": _pairs(rng, variables, heap),
        "store": _pairs(rng, variables, heap),
    }


def random_lines(lines: int, length: int) -> Relations:
    """Return lines of nodes with a shortcut from every third node or so, and one node in twenty closed."""
    rng = default_rng(SEED)
    nodes = np.arange(lines * length)
    place = nodes % length
    steps = np.stack([nodes, nodes + 1], axis=1)[place < length - 1]
    jumps = np.stack([nodes, nodes + rng.integers(2, 6, len(nodes))], axis=1)
    jumps = jumps[(rng.random(len(nodes)) < 1 / 3) & (jumps[:, 1] // length == nodes // length)]
    closed = nodes[rng.random(len(nodes)) < 1 / 20]
    return {"edge": np.unique(np.concatenate((steps, jumps)), axis=0), "closed": closed[:, np.newaxis]}


def closure_dense() -> Workload:
    """Return the closure of a graph that is mostly one strong component."""
    return Workload("closure", random_graph(2000, 6000), {"path": 3_545_627})


def closure_sparse() -> Workload:
    """Return the closure of a graph with about one edge per node, long paths and small components."""
    return Workload("closure", random_graph(20_000, 22_000), {"path": 7_752_209})


def same_generation() -> Workload:
    """Return same generation on a tree of 5,000 nodes."""
    return Workload("same_generation", random_tree(5000), {"sameGeneration": 2_824_971})


def points_to() -> Workload:
    """Return points-to analysis of 13,099 statements; about three derivations per fact."""
    relations = random_program(variables=10_000, objects=1000, assigns=12_000, heap=50)
    return Workload("points_to", relations, {"holds": 98_246, "pointsTo": 923_177})


def side_closure() -> Workload:
    """Return the closure by halves of 8,000 lines of 60 nodes, not through closed nodes."""
    return Workload("side_closure", random_lines(8000, 60), {"path": 9_548_200})


def large_same_generation() -> Workload:
    """Return same generation on a tree of 9,500 nodes."""
    return Workload("same_generation", random_tree(9500), {"sameGeneration": 9_696_963})


def large_points_to() -> Workload:
    """Return points-to analysis with five times as many objects as `points_to`."""
    relations = random_program(variables=10_000, objects=5000, assigns=12_000, heap=50)
    return Workload("points_to", relations, {"holds": 2_452_099, "pointsTo": 4_673_769})


def small_side_closure() -> Workload:
    """Return the closure by halves of two lines of 30 nodes, not through closed nodes."""
    return Workload("side_closure", random_lines(2, 30), {"path": 851})


def small_closure() -> Workload:
    """Return a closure of 90 edges."""
    return Workload("closure", random_graph(60, 90), {"path": 1459})


def small_same_generation() -> Workload:
    """Return same generation on a tree of 60 nodes."""
    return Workload("same_generation", random_tree(60), {"sameGeneration": 577})


def small_points_to() -> Workload:
    """Return points-to analysis of a program with 60 variables."""
    relations = random_program(variables=60, objects=20, assigns=80, heap=14)
    return Workload("points_to", relations, {"holds": 196, "pointsTo": 453})


# The workloads of `zodiac bench graphs`, and small ones of the same programs.
WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "closure-dense": closure_dense,
    "closure-sparse": closure_sparse,
    "same-generation": same_generation,
    "points-to": points_to,
}
SMALL: Mapping[str, Callable[[], Workload]] = {
    "closure": small_closure,
    "same-generation": small_same_generation,
    "points-to": small_points_to,
}
# The workloads of `zodiac bench spark --only rounds`: no argument is kept, so no partition is independent.
ROUNDS: Mapping[str, Callable[[], Workload]] = {
    "same-generation": large_same_generation,
    "side-closure": side_closure,
    "points-to": large_points_to,
}
SMALL_ROUNDS: Mapping[str, Callable[[], Workload]] = {
    "same-generation": small_same_generation,
    "points-to": small_points_to,
    "side-closure": small_side_closure,
}


def _pairs(rng: np.random.Generator, below: int, count: int) -> Rows:
    return np.unique(rng.integers(0, below, (count, 2)), axis=0)


def _node(number: int) -> IRI:
    return IRI(f"n{number}")
