"""Programs and data for many small changes: thousands of rules, and one relation with millions of facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import default_rng

from zodiacedge.language.ast import Fact
from zodiacedge_bench.workloads import paper
from zodiacedge_bench.workloads.rule_files import rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 7
RULES_PER_COPY = 18
LINKS_PER_NODE = 10

_NAME = re.compile(r"\b[pr]\d+\b")


def copied_rules(copies: int) -> str:
    """Return copies of rule set 2, each with labels and predicates of its own: `r1_7`, `p11_7`."""
    text = paper.rule_set(2)
    return "".join(_NAME.sub(rf"\g<0>_{number}", text) for number in range(copies))


def copied_facts(copies: int, turbines: int) -> list[Fact]:
    """Return data set 2 for each of these copies, all about the same turbines."""
    return [
        Fact(f"{fact.relation}_{number}", fact.args)
        for number in range(copies)
        for fact in paper.ds2(turbines)
    ]


def link_rules() -> str:
    """Return the text of the rules about links."""
    return rules("links")


def links(nodes: int) -> NDArray[np.int64]:
    """Return ten links of every node, the n-th to a random node in the n-th tenth of all nodes.

    So links are distinct without a set of millions.
    """
    tenth = nodes // LINKS_PER_NODE
    start = np.repeat(np.arange(nodes), LINKS_PER_NODE)
    part = np.tile(np.arange(LINKS_PER_NODE), nodes)
    end = part * tenth + default_rng(SEED).integers(0, tenth, len(start))
    return np.stack([start, end], axis=1)


def watched(nodes: int, count: int) -> NDArray[np.int64]:
    """Return a random choice of nodes."""
    return np.sort(default_rng(SEED).choice(nodes, count, replace=False))
