"""Programs and data for many small changes: thousands of rules, and one relation with millions of facts."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import default_rng

from zodiacedge.language.ast import Fact
from zodiacedge.workloads import paper

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 7
RULES_PER_COPY = 18
LINKS_PER_NODE = 10

_NAME = re.compile(r"\b[pr]\d+\b")


def copied_rules(copies: int) -> str:
    """Return rule set 2 so many times, each copy with labels and predicates of its own: `r1_7`, `p11_7`."""
    text = paper.rule_set(2)
    return "".join(_NAME.sub(rf"\g<0>_{number}", text) for number in range(copies))


def copied_facts(copies: int, turbines: int) -> list[Fact]:
    """Return data set 2 for each of these copies; all of them are about the same turbines."""
    return [
        Fact(f"{one.relation}_{number}", one.args) for number in range(copies) for one in paper.ds2(turbines)
    ]


def link_rules() -> str:
    """Return the text of the rules about links."""
    return (files("zodiacedge.workloads") / "rules" / "links.rules").read_text(encoding="utf-8")


def links(nodes: int) -> NDArray[np.int64]:
    """Return ten links of every node, the n-th of them to somewhere in the n-th tenth of all nodes.

    So no link comes twice, and no set of millions is needed to know it.
    """
    tenth = nodes // LINKS_PER_NODE
    start = np.repeat(np.arange(nodes), LINKS_PER_NODE)
    part = np.tile(np.arange(LINKS_PER_NODE), nodes)
    end = part * tenth + default_rng(SEED).integers(0, tenth, len(start))
    return np.stack([start, end], axis=1)


def watched(nodes: int, count: int) -> NDArray[np.int64]:
    """Return some of the nodes."""
    return np.sort(default_rng(SEED).choice(nodes, count, replace=False))
