"""Windowed rows: the rows of a relation whose moment is in a window, as a change moves them in and out.

All nodes that read the same atom within the same window share them, so a change finds them once. They follow
from the rows inserted and deleted and from the moments that enter and leave, never from what a window holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.maintain.delta_query import DELTA, DeltaQuery, evaluate_delta
from zodiacedge.engine.embedded.storage.relation import NO_CLASS
from zodiacedge.engine.embedded.storage.row_algebra import difference
from zodiacedge.engine.embedded.versions.ownership import split_changes
from zodiacedge.language.ast import Aggregate, Atom, Variable
from zodiacedge.language.windows import is_window
from zodiacedge.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from zodiacedge.engine.embedded.maintain.rule_profile import NodeRules
    from zodiacedge.engine.embedded.maintain.windows import WindowMove
    from zodiacedge.engine.embedded.storage.relation import Relation
    from zodiacedge.engine.embedded.types import Flags, Ids
    from zodiacedge.engine.embedded.versions.draft import Draft
    from zodiacedge.language.ast import Conjunct
    from zodiacedge.terms import Term


class WindowedAtom(NamedTuple):
    """An atom of a body, a window that one of its arguments is in, and that argument's column."""

    atom: int
    window: int
    column: int
    term: Term
    """The window, as a term."""


def windowed_atoms(body: tuple[Conjunct, ...]) -> tuple[WindowedAtom, ...] | None:
    """Return the windows of a body, each with an atom that has its moment; None if one has no atom."""
    found: list[WindowedAtom] = []
    for position, conjunct in enumerate(body):
        if not isinstance(conjunct, Atom) or not is_window(conjunct):
            continue
        moment, term = conjunct.args
        taken = {one.atom for one in found}
        atoms = (
            (n, atom)
            for n, atom in enumerate(body)
            if isinstance(atom, Atom) and atom.relation != RDF_TYPE and not is_window(atom) and n not in taken
        )
        at = next(((n, a.args.index(moment)) for n, a in atoms if a.args.count(moment) == 1), None)
        if at is None or not isinstance(moment, Variable) or isinstance(term, Variable | Aggregate):
            return None
        found.append(WindowedAtom(at[0], position, at[1], term))
    return tuple(found)


class WindowedRows:
    """The rows that one change moves into windows and out of them."""

    def __init__(self, draft: Draft, move: WindowMove) -> None:
        """Take a change under way, and how it moves the windows."""
        self._draft = draft
        self._move = move
        self._split: dict[Relation, tuple[Ids, Ids]] = {}
        self._moved: dict[tuple[Relation, int, int], tuple[Ids, Ids]] = {}
        self._kept: dict[tuple[int, Hashable], tuple[Ids, object]] = {}

    def split(self, relation: Relation) -> tuple[Ids, Ids]:
        """Return the deleted and the inserted rows of a relation that no node which asks derives."""
        if relation not in self._split:
            rows = self._draft.changed.rows(relation)
            self._split[relation] = split_changes(rows, self._draft.flags(relation, rows))
        return self._split[relation]

    def count(self, relation: Relation, term: Term) -> int:
        """Estimate the rows that a change moves into a window and out of it."""
        entering, leaving = self._move.of(self._number(term))
        return self._draft.changed.count(relation) + len(entering) + len(leaving)

    def moved(self, node_rules: NodeRules, relation: Relation, column: int, term: Term) -> tuple[Ids, Ids]:
        """Return the rows of a relation that leave a window, and those that enter it.

        The rules of the node that asks first keep the query for those that stay and whose moment moves.
        """
        number = self._number(term)
        name = (relation, column, number)
        if name not in self._moved:
            self._moved[name] = self._found(node_rules, relation, column, number)
        return self._moved[name]

    def once(self, rows: Ids, name: Hashable, make: Callable[[], object]) -> object:
        """Return what is made of rows, made once for all nodes that get the same rows."""
        known = self._kept.get((id(rows), name))
        if known is None:
            # The rows are kept too: another array may not take their place in memory.
            known = self._kept[id(rows), name] = rows, make()
        return known[1]

    def _number(self, term: Term) -> int:
        return self._draft.store.terms.constant(term)

    def _found(self, node_rules: NodeRules, relation: Relation, column: int, number: int) -> tuple[Ids, Ids]:
        none = np.zeros((0, relation.arity), np.int32)
        changed = relation in self._draft.changed
        deleted, inserted = self.split(relation) if changed else (none, none)
        before, after = self._move.old.span(number), self._move.new.span(number)
        was, is_in = self._within(deleted[:, column], before), self._within(inserted[:, column], after)
        entering, leaving = self._move.of(number)
        # Of the rows that stay, those whose moment leaves or enters; of the deleted ones it does not matter.
        stays = was & self._within(deleted[:, column], after)
        out = self._looked_up(node_rules, relation, column, leaving)
        come = self._looked_up(node_rules, relation, column, entering)
        entered = self._within(deleted[:, column], after) & ~was
        return (
            _together(_those(deleted, stays), out),
            _together(_those(inserted, is_in), difference(come, _those(deleted, entered))),
        )

    def _within(self, ids: Ids, span: tuple[int, int]) -> Flags:
        """Return a flag for each term: whether it is a moment after and up to others."""
        dictionary = self._draft.store.dictionary
        micros = dictionary.payloads[ids]
        inside: Flags = (dictionary.kinds[ids] == L.K_MOMENT) & (span[0] < micros) & (micros <= span[1])
        return inside

    def _looked_up(self, node_rules: NodeRules, relation: Relation, column: int, moments: Ids) -> Ids:
        """Return the rows of the old version with one of some moments."""
        if not len(moments):
            return np.zeros((0, relation.arity), np.int32)
        args = tuple(Variable(f"V{n}") for n in range(relation.arity))
        atoms = (Atom(DELTA, (args[column],)), Atom(relation.name, args))
        query = node_rules.delta_query(("of moments", relation, column), lambda: DeltaQuery(args, atoms, 0))
        return evaluate_delta(self._draft, query, [(moments.reshape(-1, 1), NO_CLASS)], None, old=True)


def _those(rows: Ids, flags: Flags) -> Ids:
    """Return the flagged rows; the array itself if these are all, so that nodes share it."""
    return rows if flags.all() else rows[flags]


def _together(one: Ids, other: Ids) -> Ids:
    if not len(one) or not len(other):
        return one if len(one) else other
    return np.concatenate((one, other))
