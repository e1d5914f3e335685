"""How long the rule graph takes at 10,000 rules: to build, and for one rule more or less.

Three shapes: 556 renamed copies of the paper's rule set 2 side by side, one long chain, and one hub
predicate that half of the rules write and the other half read. Targets: build under 3 s, one rule
under 20 ms. Run with `python bench/programs/graph_scale.py`; takes about 20 s.
"""

from __future__ import annotations

import gc
import random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from zodiacedge.graph import HyperGraph
from zodiacedge.language.parser import parse_program
from zodiacedge_bench.workloads.churn import RULES_PER_COPY, copied_rules

if TYPE_CHECKING:
    from zodiacedge.language.ast import Rule

RULES = 10_000
TRIALS = 200


def keyed(text: str) -> dict[str, Rule]:
    """Parse rules; here the place of a rule is key enough."""
    return {f"k{place}": rule for place, rule in enumerate(parse_program(text).rules)}


def copies() -> str:
    """Return 556 renamed copies of rule set 2."""
    return copied_rules(-(-RULES // RULES_PER_COPY))


def chain() -> str:
    """Return a rule per step of a long chain."""
    return "\n".join(f"c{i}: p{i + 1}(X, Y) :- p{i}(X, Y) ." for i in range(RULES))


def hub() -> str:
    """Return rules half of which write one predicate and half of which read it."""
    half = RULES // 2
    return "\n".join(
        [f"w{i}: hub(X, Y) :- in{i}(X, Y) ." for i in range(half)]
        + [f"r{i}: out{i}(X, Y) :- hub(X, Y) ." for i in range(half)]
    )


def one_more(rng: random.Random, shape: str) -> str:
    """Return a rule that reads and writes predicates of the shape without closing a cycle."""
    copy, i = rng.randrange(RULES // 18), rng.randrange(RULES - 1)
    j = rng.randrange(i + 1, RULES)
    return {
        "copies": f"p30_{copy}(X, Y) :- p1{rng.randrange(1, 5)}_{copy}(Y, X), p5_{i % 556}(X, Y) .",
        "chain": f"p{j + 1}(X, Y) :- p{i}(X, Y), extra(Y, X) .",
        "hub": rng.choice(["hub(X, Y) :- in7(X, Y), extra(X, Y) .", "out9(X, Y) :- hub(Y, X) ."]),
    }[shape]


def timed(graph: HyperGraph, added: dict[str, Rule], removed: list[str]) -> tuple[float, HyperGraph]:
    """Return the seconds of one update, and the new graph."""
    start = perf_counter()
    result, _ = graph.update(added, removed)
    return perf_counter() - start, result


def report(what: str, seconds: list[float]) -> None:
    """Print the best, the median and the worst of several runs."""
    best, middle, worst = (1000 * x for x in (min(seconds), median(seconds), max(seconds)))
    print(f"  {what:<34} best {best:8.2f} ms   median {middle:8.2f} ms   worst {worst:8.2f} ms")


def measure(shape: str, text: str) -> None:
    """Print the figures of one shape."""
    rules = keyed(text)
    seconds, graph = timed(HyperGraph(), rules, [])
    print(f"{shape}: {len(rules)} rules, {len(graph)} hyper-nodes, built in {seconds:.2f} s")
    # The collector would walk over the syntax trees of all rules in the middle of a measurement.
    gc.collect()
    gc.freeze()
    rng = random.Random(1)
    adding, undoing, removing, series = [], [], [], []
    for trial in range(TRIALS):
        (extra,) = parse_program(one_more(rng, shape)).rules
        took, grown = timed(graph, {f"x{trial}": extra}, [])
        adding.append(took)
        undoing.append(timed(grown, {}, [f"x{trial}"])[0])
        removing.append(timed(graph, {}, [rng.choice(list(rules))])[0])
    live = graph
    for trial in range(TRIALS):
        (extra,) = parse_program(one_more(rng, shape)).rules
        took, live = timed(live, {f"y{trial}": extra}, [])
        series.append(took)
    report("add one rule", adding)
    report("remove the added rule", undoing)
    report("remove any rule", removing)
    report("add one after the other", series)


def measure_ring(text: str) -> None:
    """Print the dearest single rules there are: one that joins all nodes to one, and its removal."""
    graph = HyperGraph.build(keyed(text))
    (closing,) = parse_program(f"p0(X, Y) :- p{RULES}(X, Y) .").rules
    (inside,) = parse_program("p7(X, Y) :- p3(X, Y), p5(X, Y) .").rules
    merging, ring = timed(graph, {"closing": closing}, [])
    joining, larger = timed(ring, {"inside": inside}, [])
    leaving, _ = timed(larger, {}, ["inside"])
    splitting, _ = timed(ring, {}, ["closing"])
    print(f"ring: chain to one node of {len(ring.rules)} rules {1000 * merging:.0f} ms;", end=" ")
    print(f"inside it, one rule more {1000 * joining:.0f} ms, less {1000 * leaving:.0f} ms;", end=" ")
    print(f"back to a chain {1000 * splitting:.0f} ms")


def main() -> None:
    """Measure all shapes."""
    for shape, text in (("copies", copies()), ("chain", chain()), ("hub", hub())):
        measure(shape, text)
    measure_ring(chain())


if __name__ == "__main__":
    main()
