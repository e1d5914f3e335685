"""Preparation for changes, when a load ends: hash sets of all tables, and the indexes of large ones.

The first change after a load would otherwise build them, and take a thousand times as long as later changes.
Delta queries are assembled for their indexes; small tables are left to the changes that read them.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.evaluate.modules import Shape
from zodiacedge.engine.embedded.kernels.jit import MEMORY
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery, evaluate_delta, prepare_delta
from zodiacedge.engine.embedded.maintain.shapes.closure import is_closure, prepare_closure
from zodiacedge.engine.embedded.maintain.shapes.equivalence import is_equivalence, pairs_query
from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge.engine.embedded.storage.table import SCRATCH, Table
from zodiacedge.engine.embedded.versions.ownership import mark_owners
from zodiacedge.language.ast import Atom, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.storage.segment import Segment
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.engine.yield_point import YieldPoint


# A table of fewer rows is indexed in a fraction of a millisecond, in the first change that needs it.
_LARGE = 1 << 14
# One row in so many is room for the rows of later changes. Without any, the first row would move all others.
_ROOM = 16
_ARGS = (Variable("X"),)


def prepare(
    draft: Draft, nodes: Iterable[tuple[NodeRules, Segment]], tables: Iterable[Table], yield_point: YieldPoint
) -> None:
    """Prepare nodes that were evaluated, and the tables of explicit facts, for changes."""
    nodes = list(nodes)
    own_tables = ((*own.tables.values(), *own.aggregate_rows.values()) for _, own in nodes)
    tables = [*tables, *chain.from_iterable(own_tables)]
    large = [table for table in tables if len(table) >= _LARGE]
    for table in large:
        table.reserve(len(table) // _ROOM, growth=1)
    for node_rules, own in nodes:
        read = dict.fromkeys(relation for atom in node_rules.atoms for relation in draft.relations(atom))
        bases = (*draft.bases_of(read, old=False), *own.tables.values())
        if max(map(len, bases), default=0) < _LARGE:
            continue
        if is_closure(node_rules):
            prepare_closure(draft, node_rules, own)
        for query, delta in _queries(draft, node_rules, read):
            prepare_delta(draft, query, delta, own)
            yield_point.yield_to_waiters()
    if large:
        _load_kernels(draft, int(large[0].rows[0, 0]))
    for table in tables:
        table.ensure_hash_set()
    for table in large:
        table.make_ready(len(table) // _ROOM, deleting=True)
        yield_point.yield_to_waiters()


def _load_kernels(draft: Draft, known: int) -> None:
    """Call the kernels that only changes use; a term is known. Loading takes 30 ms, once in a process."""
    rows = np.zeros((1, 1), np.int32)
    query = DeltaQuery(_ARGS, (Atom(DELTA, _ARGS),), 0)
    # Delta rows of several classes are read by the interpreter alone, which modules do without.
    for delta_rows in ([(rows, NO_CLASS)], [(rows, NO_CLASS)] * 2):
        evaluate_delta(draft, query, delta_rows, None, old=False)
    draft.store.dictionary.encode(draft.store.dictionary.decode(known))
    at = MEMORY.address(rows)
    mark_owners(at, 0, -1, at, 0, 1, at, SCRATCH.address)
    table = Table.of(rows)
    table.filter(rows, present=True)
    table.positions(rows)
    table.delete(rows)


def _queries(
    draft: Draft, node_rules: NodeRules, read: Iterable[Relation]
) -> Iterator[tuple[DeltaQuery, tuple[int, int]]]:
    """Yield the delta queries of a node's maintenance, with the width and the class of their delta rows."""
    copies = node_rules.module is not None and node_rules.module.shape is Shape.COPY
    if is_equivalence(node_rules):
        (relation,) = {*node_rules.heads.values()}
        yield pairs_query(node_rules, relation), (1, NO_CLASS)
        return
    for relation in read if not copies and not is_closure(node_rules) else ():
        for occurrence in node_rules.occurrences(draft.store, relation):
            if occurrence.negated:
                yield (query := node_rules.matched(occurrence)), (len(query.head), NO_CLASS)
            elif occurrence.inner:
                query = node_rules.groups_at(occurrence.key, occurrence.position)
                yield query, (relation.arity, relation.member_of)
            else:
                query = node_rules.heads_at(occurrence.key, occurrence.position)
                yield query, (relation.arity, relation.member_of)
    for key, aggregate in node_rules.aggregates.items():
        groups, columns = len(aggregate.groups), len(aggregate.groups) + len(aggregate.folds)
        yield node_rules.bindings_of_groups(key), (groups, NO_CLASS)
        yield node_rules.rows_of_groups(key), (groups, NO_CLASS)
        position = node_rules.rules[key].body.index(aggregate)
        yield node_rules.heads_at(key, position), (columns, NO_CLASS)
    if is_closure(node_rules) or node_rules.one_instance_each:
        return
    for key, rule in node_rules.rules.items():
        query = node_rules.instances(key) if node_rules.recursive else node_rules.supported(key)
        for relation in node_rules.relations(draft.store, rule.head) or ():
            yield query, (relation.arity, relation.member_of)
