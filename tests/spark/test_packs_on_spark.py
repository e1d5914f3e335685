"""Packs on Spark: they come, change and go as on the engine that defines what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zodiacedge as ze
from packs.making import made, refused
from zodiacedge.engine.api import Settings
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.packs.delta import PackDelta, delta_between

if TYPE_CHECKING:
    from zodiacedge.engine.spark.engine import SparkEngine
    from zodiacedge.packs.pack import Pack

RULES = "t(X, Y) :- e(X, Y) .  r2: t(X, Z) :- t(X, Y), e(Y, Z) .  r3: far(X) :- t(X, Y), limit(L), Y > L ."


def test_a_pack_on_spark_is_the_pack_of_the_reference(spark: SparkEngine) -> None:
    bases = [KnowledgeBase(spark, Settings()), ze.open(engine="reference")]
    first, second = made(f"{RULES}  limit(2) ."), made(f"{RULES}  limit(1) .", 2)
    failing = made("p(X) :- t(X, X) .", name="other", more='checks = [{ some = "?- p(X) ." }]')
    for kb in bases:
        with kb.change() as change:
            change.add_rules("own: t(A, B) :- e(A, B) .  e(1, 2) . e(2, 3) . e(3, 4) .")
    on_spark, reference = bases
    steps: list[tuple[tuple[Pack | PackDelta, ...], tuple[str, ...]]] = [
        ((first,), ()),
        ((delta_between(first, second),), ()),
        ((), ("diagnosis",)),
    ]
    for packs, remove in steps:
        moved, expected = (kb.install(*packs, remove=remove).net_change() for kb in bases)
        assert moved == expected
        assert on_spark.facts() == reference.facts()
        assert set(on_spark.rules) == set(reference.rules)
        with refused("P010"):
            on_spark.install(failing)
