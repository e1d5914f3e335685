"""Two versions side by side, on data frames: what came, and what went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.spark.storage.dataframes import Frames, names, tagged, together
from zodiacedge.engine.spark.storage.files import DataFile, Relation, Segment, SignedFiles
from zodiacedge.engine.yield_point import ALONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from zodiacedge.engine.spark.evaluate.seminaive import Owners
    from zodiacedge.engine.spark.storage.workspace import Workspace
    from zodiacedge.engine.yield_point import YieldPoint

Parts = dict[Relation, tuple[DataFile, ...]]
# Where at most one row in so many came or went, the old files stay and what moved is told beside them.
_SHARE = 4
_MOST_LAYERS = 16


def compared(
    place: Workspace,
    before: Mapping[Relation, SignedFiles],
    after: Mapping[Relation, SignedFiles],
    turn: YieldPoint,
) -> dict[Relation, SignedFiles]:
    """Return a segment that was evaluated anew, told as what came and went where that is little: one job."""
    frames = Frames(place)
    relations = list({**before, **after})
    sides = {r: (before.get(r, SignedFiles()), after.get(r, SignedFiles())) for r in relations}
    both = [r for r in relations if sides[r][0].rows and sides[r][1].rows]
    pieces: list[DataFrame] = []
    width = max((r.width for r in relations), default=1)
    for tag, relation in enumerate(both):
        old, new = (frames.content(relation, one) for one in sides[relation])
        columns = names(relation.width)
        pieces.append(tagged(new.join(old, columns, "left_anti"), 2 * tag, width))
        pieces.append(tagged(old.join(new, columns, "left_anti"), 2 * tag + 1, width))
    moved = {}
    if pieces:
        listed = [relation for relation in both for _ in range(2)]
        moved = frames.write(together(pieces), listed, "comparing with the version before", turn)
    found = {relation: new_content for relation, (_, new_content) in sides.items()}
    for tag, relation in enumerate(both):
        old_content, new_content = sides[relation]
        plus, minus = moved.get(2 * tag, []), moved.get(2 * tag + 1, [])
        rows = sum(part.rows for part in (*plus, *minus))
        if not rows:
            found[relation] = old_content
        elif rows * _SHARE <= new_content.rows and len(old_content.layers) < _MOST_LAYERS:
            found[relation] = old_content.then(plus, minus)
    return found


def visible_changes(
    place: Workspace, relations: Sequence[Relation], before: Owners, after: Owners
) -> tuple[Parts, Parts]:
    """Return what became visible of some relations, and what is visible no more: one job."""
    frames = Frames(place)
    pieces: list[DataFrame] = []
    width = max(r.width for r in relations)
    for tag, relation in enumerate(relations):
        columns = names(relation.width)
        changes = [
            frames.delta(relation, _content(before, owner, relation), _content(after, owner, relation))
            for owner in {**before, **after}
        ]
        for side, others in ((0, before), (1, after)):
            rows = [change[side] for change in changes if change[side] is not None]
            frames_of = [one for one in rows if one is not None]
            if frames_of:
                seen = frames.union(relation, [one.content(relation) for one in others.values()])
                moved = together(frames_of).distinct().join(seen, columns, "left_anti")
                pieces.append(tagged(moved, 2 * tag + side, width))
    if not pieces:
        return {}, {}
    listed = [relation for relation in relations for _ in range(2)]
    written = frames.write(together(pieces), listed, "comparing what is visible", ALONE)
    came = {relations[tag // 2]: tuple(parts) for tag, parts in written.items() if tag % 2 == 0}
    went = {relations[tag // 2]: tuple(parts) for tag, parts in written.items() if tag % 2 == 1}
    return came, went


def _content(owners: Owners, owner: frozenset[str] | None, relation: Relation) -> SignedFiles:
    return owners.get(owner, Segment()).content(relation)
