"""Programs and data for many small changes."""

from __future__ import annotations

import numpy as np

from zodiacedge.language.parser import parse_program
from zodiacedge_bench.workloads import churn


def test_copies_share_neither_labels_nor_predicates() -> None:
    rules = parse_program(churn.copied_rules(3)).rules
    assert len(rules) == 3 * churn.RULES_PER_COPY
    assert len({rule.label for rule in rules}) == len(rules)
    heads = {rule.head.predicate.name for rule in rules}
    assert len(heads) == 3 * 11
    assert {"p31_0", "p31_2"} <= heads


def test_each_copy_has_facts_of_its_own() -> None:
    facts = churn.copied_facts(3, 4)
    assert len(set(facts)) == 3 * 16
    assert {one.relation for one in facts} == {f"p{n}_{copy}" for n in range(1, 5) for copy in range(3)}


def test_every_node_has_ten_links_and_none_twice() -> None:
    links = churn.links(200)
    assert len(np.unique(links, axis=0)) == len(links) == 2000
    assert np.bincount(links[:, 0]).tolist() == [10] * 200
    assert links.min() >= 0
    assert links.max() < 200


def test_links_are_the_same_each_time() -> None:
    assert (churn.links(200) == churn.links(200)).all()
    assert len(set(churn.watched(200, 20).tolist())) == 20
