"""A recursive node whose facts keep an argument (`plan.partition`): parts by it never need each other.

The facts that the node
starts from are dealt out by that argument; all else that its rules read, every task reads whole. Each task
runs the node to its end on the embedded engine: one stage, no shuffle per round, and no fact in two parts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zodiacedge.engine.api import Dropped
from zodiacedge.engine.embedded.node import NodeEvaluation
from zodiacedge.engine.embedded.store import Store
from zodiacedge.engine.embedded.table import Table
from zodiacedge.engine.limits import Limits, Meter
from zodiacedge.engine.registry import Registry
from zodiacedge.engine.spark.columns import Reader, Translation, needs_values, segment_of, union
from zodiacedge.engine.spark.frames import Frames, tagged, together
from zodiacedge.engine.spark.scratch import Content, Folder, Part, Relation
from zodiacedge.engine.spark.values import MANIFEST, outcome, raise_failure, told, with_more
from zodiacedge.engine.spark.vocabulary import Hashing, Terms
from zodiacedge.language.checks import body_atoms
from zodiacedge.language.printer import format_rule
from zodiacedge.plan.partition import division, own_atoms
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from zodiacedge.engine.spark.nodes import Result, Setting
    from zodiacedge.engine.spark.place import Place
    from zodiacedge.language.ast import Atom, Rule
    from zodiacedge.terms import Term

    Keys = NDArray[np.int64]

Positions = dict[Relation, int]
_PARTS_PER_CORE = 2
_KEY = "dealt_by"


def positions(rules: Sequence[Rule]) -> Positions | None:
    """Return the position of each predicate of a node that its facts can be dealt out by, if there is one."""
    heads = [rule.head for rule in rules]
    relations = list(dict.fromkeys(map(_relation, heads)))
    if any(rule.aggregate for rule in rules) or not all(relation.arity for relation in relations):
        return None
    own = [list(own_atoms(rule, heads)) for rule in rules]
    others = [
        atom
        for rule, mine in zip(rules, own, strict=True)
        for atom in body_atoms(rule.body)
        if not any(atom is one for one in mine)
    ]
    # A relation that is dealt out cannot be read whole as well.
    if any(_relation(atom) in relations for atom in others) or not all(own):
        return None
    way = division(rules)
    return {relation: way.positions[relation.name, relation.arity] for relation in relations} if way else None


def _relation(atom: Atom) -> Relation:
    return Relation(atom.relation, len(atom.args))


def evaluate(rules: Mapping[str, Rule], by: Positions, setting: Setting, result: Result) -> Result:
    """Evaluate a node in parts: one job."""
    place, frames = setting.place, Frames(setting.place)
    relations = tuple(by)
    width = max(relation.width for relation in relations)
    pieces = []
    for tag, (relation, position) in enumerate(by.items()):
        contents = [one.content(relation) for one in setting.after.values()]
        rows = frames.union(relation, contents)
        pieces.append(tagged(rows, tag, width).withColumn(_KEY, rows[f"c{position}"]))
    atoms = [atom for rule in rules.values() for atom in body_atoms(rule.body)]
    whole = dict.fromkeys(r for r in map(_relation, atoms) if r not in by)
    part = _Part(
        rules,
        relations,
        setting.keys,
        tuple((r, tuple(one.content(r) for one in setting.after.values())) for r in whole),
        result.terms,
        place.scratch.folder,
        place.hashing,
        setting.settings.registry,
        setting.settings.limits,
        place.options.policy.modules,
    )
    dealt = together(pieces).repartition(place.jobs.cores * _PARTS_PER_CORE, _KEY)
    rows_told = place.jobs.run(
        lambda: dealt.mapInArrow(part, MANIFEST).collect(),
        "running a recursion in parts",
        setting.settings.turn,
    )
    for row in rows_told:
        _take(place, json.loads(row["told"]), relations, result)
    return result


def _take(place: Place, one: dict[str, Any], relations: Sequence[Relation], result: Result) -> None:
    raise_failure(one)
    for tag, path, rows, classes in one["parts"]:
        part = place.adopt(Part(path, rows, {int(key): count for key, count in classes.items()}))
        relation = relations[tag]
        result.contents[relation] = result.contents.get(relation, Content()).then((part,))
    if one["terms"]:
        fresh = place.adopt(Part(one["terms_path"], one["terms"]))
        result.terms = Terms((*result.terms.parts, fresh))
    for key, (count, example) in one["dropped"].items():
        known = with_more(result.dropped.get(key), Dropped(count, example))
        if known:
            result.dropped[key] = known
    result.rounds = max(result.rounds, one["rounds"])


@dataclass(frozen=True)
class _Part:
    """A task: one part of a node, to its end."""

    rules: Mapping[str, Rule]
    relations: tuple[Relation, ...]
    keys: Mapping[Term, int]
    whole: tuple[tuple[Relation, tuple[Content, ...]], ...]
    terms: Terms
    folder: Folder
    hashing: Hashing = field(default_factory=Hashing)
    registry: Registry = field(default_factory=Registry)
    limits: Limits = field(default_factory=Limits)
    modules: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dealt: dict[int, list[list[Keys]]] = {}
        for batch in batches:
            tags = batch.column(0).to_numpy()
            for tag in np.unique(tags).tolist():
                chosen = tags == tag
                columns = [batch.column(n + 1).to_numpy()[chosen] for n in range(self.relations[tag].width)]
                dealt.setdefault(tag, []).append(columns)
        if dealt:
            yield told(partial(self._run, dealt))

    def _run(self, dealt: Mapping[int, list[list[Keys]]]) -> dict[str, object]:
        reader, translation = Reader(), Translation(self.keys, self.hashing)
        reads = [(r, [reader.read(r, content) for content in contents]) for r, contents in self.whole]
        mine = {
            self.relations[tag]: [np.concatenate(column) for column in zip(*pieces, strict=True)]
            for tag, pieces in dealt.items()
        }
        if any(needs_values(rule.body) for rule in self.rules.values()):
            seen = [column for columns in mine.values() for column in columns]
            translation.load_values([*seen, *reader.seen()], self.terms)
        tables = {r: union([read.table(translation) for read in found], r.arity) for r, found in reads}
        for relation, columns in mine.items():
            tables[relation] = Table(relation.arity)
            tables[relation].insert(translation.rows(columns, relation.arity))
        store = Store(translation.terms, segment_of(tables, translation))
        run = NodeEvaluation(store, self.rules, self.registry, self._watch(), modules=self.modules)
        result = run.evaluate()
        parts = []
        for tag, relation in enumerate(self.relations):
            pieces = [
                translation.columns(name, table.rows)[1]
                for name, table in result.segment.tables.items()
                if len(table) and (relation.typed if name.name == RDF_TYPE else name[:2] == relation)
            ]
            if pieces:
                columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
                part = self.folder.write_rows(relation, columns)
                parts.append((tag, part.path, part.rows, dict(part.classes)))
        dropped = {key: (one.count, one.example) for key, one in result.dropped.items()}
        base = outcome(Part("", 0), translation, self.folder, None)
        return base | {"parts": parts, "dropped": dropped, "rounds": result.rounds}

    def _watch(self) -> Callable[[int, int], None]:
        meter = Meter(self.limits)
        rule = next(iter(self.rules.values()))
        name = rule.label or format_rule(rule)

        def watch(rounds: int, facts: int) -> None:
            meter.look(name, rule.span)
            meter.count(facts, rounds, name, rule.span)

        return watch
