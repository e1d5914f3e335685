"""A symmetric and transitive node in rounds: the classes of a graph whose edges no task need hold.

Every term learns the smallest one that it is connected with. A round turns the edges into others that connect
the same terms in fewer steps: what is larger than a term is tied to the smallest one next to it, and so is
what is smaller (the large star and the small star of Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii).
After a number of rounds that grows like a logarithm, all edges of a class lead to its smallest term, and a
round changes nothing. Then every member is paired with every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.dataframes import Frames, names, tagged, together
from zodiacedge.engine.spark.storage.files import DataFile, Relation, SignedFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.evaluate.seminaive import Result, Setting

_STARS = Relation("edges of classes", 2)


def evaluate(relation: Relation, setting: Setting, result: Result) -> Result:
    """Fill a relation with the pairs of each class of what others have of it: a job per round, and two."""
    frames, turn = Frames(setting.workspace), setting.settings.turn
    pairs = frames.union(relation, [one.content(relation) for one in setting.after.values()])
    parts = _written(frames, _oriented(pairs), setting)
    while parts:
        result.rounds += 1
        setting.watch(result.rounds, 0)
        before = frames.parts(parts, 2)
        after = _small_star(_large_star(before))
        moved = tagged(after.join(before, names(2), "left_anti"), 1, 2)
        both = together([tagged(after, 0, 2), moved])
        found = frames.write(both, [_STARS, _STARS], "finding classes", turn, frozenset({1}))
        done = not found.get(1) and _rows(found[0]) == _rows(parts)
        parts = found[0]
        if done:
            break
    derived = frames.write(
        tagged(_paired(_members(pairs, frames.parts(parts, 2))), 0, 2), [relation], "pairing members", turn
    )
    result.contents[relation] = SignedFiles.of(*derived.get(0, ()))
    result.rounds = max(result.rounds, 1)
    return result


def _written(frames: Frames, edges: DataFrame, setting: Setting) -> list[DataFile]:
    turn = setting.settings.turn
    return frames.write(tagged(edges, 0, 2), [_STARS], "finding classes", turn).get(0, [])


def _rows(parts: Sequence[DataFile]) -> int:
    return sum(part.rows for part in parts)


def _oriented(pairs: DataFrame) -> DataFrame:
    """Return edges from the larger term to the smaller, each once; loops connect nothing."""
    edges = pairs.where("c0 <> c1").selectExpr("greatest(c0, c1) as c0", "least(c0, c1) as c1")
    return edges.distinct()


def _large_star(edges: DataFrame) -> DataFrame:
    """Tie what is larger than a term to the smallest one next to it, or to itself."""
    both = edges.unionAll(edges.selectExpr("c1 as c0", "c0 as c1"))
    least = both.groupBy("c0").agg({"c1": "min"}).toDF("c0", "least")
    found = both.join(least, "c0").where("c1 > c0").selectExpr("c1 as c0", "least(c0, least) as c1")
    return found.distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Tie a term and what is smaller next to it to the smallest of them."""
    least = edges.groupBy("c0").agg({"c1": "min"}).toDF("c0", "least")
    others = edges.join(least, "c0").where("c1 <> least").selectExpr("c1 as c0", "least as c1")
    return others.unionAll(least.toDF("c0", "c1")).distinct()


def _members(pairs: DataFrame, stars: DataFrame) -> DataFrame:
    """Return every term with the smallest one of its class."""
    terms = pairs.selectExpr("c0 as member").unionAll(pairs.selectExpr("c1 as member")).distinct()
    tied = stars.toDF("member", "least")
    return terms.join(tied, "member", "left").selectExpr("member", "coalesce(least, member) as least")


def _paired(members: DataFrame) -> DataFrame:
    others = members.toDF("other", "least")
    return members.join(others, "least").selectExpr("member as c0", "other as c1")
