"""Retention of facts: what `@keep` declares, and which facts a change forgets for it.

A tick removes the explicit facts that have become too old, in its own transaction. Facts that are too old
when they come are late: they are not taken, and the change warns of them. When a fact was last stated is
itself an explicit fact, so a version has all that retention depends on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.engine.api import KnowsSubjects, KnowsWhatIsDue, Settings
from zodiacedge.errors import Diagnostic, counted
from zodiacedge.io import quarantine_late
from zodiacedge.language.ast import Atom, Comparison, Fact, Query, Variable
from zodiacedge.language.checks import declared_times
from zodiacedge.language.printer import format_predicate, format_term
from zodiacedge.language.vocabulary import (
    KEEP_ABOUT_RELATION,
    KEEP_RELATION,
    KEEP_STATED_RELATION,
    STATED_BASE,
    TIME_FACTS,
    TIME_RELATION,
)
from zodiacedge.terms import IRI, RDF_TYPE, Literal, Term, date_time, duration, value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from zodiacedge.engine.api import Batch, State
    from zodiacedge.kb.change import Change
    from zodiacedge.language.ast import Predicate

_DECLARING = frozenset({TIME_RELATION, KEEP_RELATION, KEEP_ABOUT_RELATION, KEEP_STATED_RELATION})
LATE = "W031"
"""The code of the warning of late facts."""
_MOMENT, _SUBJECT = Variable("moment"), Variable("subject")
# What is exactly as old as its length stays.
_INSTANT = timedelta(microseconds=1)
# Up to so many facts are looked up one by one.
_FEW = 20


class About(NamedTuple):
    """A class whose members go with all facts about them, and the property that says when they were."""

    name: str
    by: str


@dataclass(frozen=True, slots=True)
class Retention:
    """How long explicit facts are kept, as `@keep` and `@time` declare it."""

    times: Mapping[str, int] = field(default_factory=dict)
    """The argument that is the time of a predicate, from 1."""
    timed: Mapping[str, timedelta] = field(default_factory=dict)
    """By predicate: facts with an older time go."""
    about: Mapping[About, timedelta] = field(default_factory=dict)
    stated: Mapping[str, timedelta] = field(default_factory=dict)
    """By predicate: facts that were last stated longer ago go."""

    @property
    def keeps(self) -> bool:
        """Whether there is an `@keep`."""
        return bool(self.timed or self.about or self.stated)

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Retention:
        """Return what declarations say; the shortest length holds."""
        facts = list(facts)
        timed: dict[str, timedelta] = {}
        about: dict[About, timedelta] = {}
        stated: dict[str, timedelta] = {}
        for fact in facts:
            kept = value_of(fact.args[-1]) if isinstance(fact.args[-1], Literal) else None
            names = [arg.value for arg in fact.args[:-1] if isinstance(arg, IRI)]
            if not isinstance(kept, timedelta):
                continue
            if fact.relation == KEEP_RELATION:
                timed[names[0]] = min(timed.get(names[0], kept), kept)
            elif fact.relation == KEEP_STATED_RELATION:
                stated[names[0]] = min(stated.get(names[0], kept), kept)
            elif fact.relation == KEEP_ABOUT_RELATION and len(names) == len(About._fields):
                about[About(*names)] = min(about.get(About(*names), kept), kept)
        return cls(declared_times(facts), timed, about, stated)


NO_RETENTION = Retention()


def declares(change: Change) -> bool:
    """Whether a change concerns declarations of time, as far as its single facts say."""
    return any(fact.relation in _DECLARING for fact in (*change.add_facts, *change.remove_facts))


def may_declare(change: Change) -> bool:
    """Whether facts of files that a change brings or removes concern declarations of time."""
    batches = (*change.loaded, *change.unloaded)
    return any(predicate.name in _DECLARING for batch in batches for predicate in batch.predicates())


def retention_of(state: State, settings: Settings, change: Change | None = None) -> Retention:
    """Return the retention of a version, or of the one after a change."""
    facts: set[Fact] = set()
    for relation in _DECLARING if state.explicit_predicates(_DECLARING) else ():
        columns = tuple(Variable(f"V{n}") for n in range(TIME_FACTS[relation]))
        rows = state.answer(Query(columns, (Atom(relation, columns),)), settings).rows
        facts.update(Fact(relation, tuple(row)) for row in rows)
    if change:
        facts = facts.difference(change.remove_facts).union(change.add_facts)
    return Retention.of(fact for fact in facts if fact.relation in _DECLARING)


def statements_of(facts: Collection[Fact], state: State) -> Iterator[Fact]:
    """Yield the facts that say when some explicit facts were last stated."""
    names = {STATED_BASE + fact.predicate.name for fact in facts}
    for predicate in state.explicit_predicates(names):
        for row in state.older(predicate, 0, None):
            if _fact_of(row, predicate.name.removeprefix(STATED_BASE)) in facts:
                yield row


class Moment(NamedTuple):
    """A time of the clock, and the version before it."""

    now: datetime
    state: State
    settings: Settings


class Retained(NamedTuple):
    """A change without late facts, and with the removal of what is too old."""

    change: Change
    late: Mapping[int, Sequence[Batch]]
    """The late facts of loaded files, by the place of their batch in the change."""

    def quarantine(self) -> None:
        """Write the late facts of files into the folders that were given for what is not taken."""
        for place, folder in self.change.quarantines.items():
            facts = chain.from_iterable(batch.facts() for batch in self.late.get(place, ()))
            quarantine_late(folder, facts)


def retained(change: Change, before: Retention, after: Retention, moment: Moment) -> Retained:
    """Return a change without late facts, and with the removal of what is too old at a time.

    `before` and `after` are what is declared before and after the change, which has the facts of its tick.
    """
    work = _Forgetting(change, moment)
    for name, kept in after.timed.items():
        if name in after.times:
            work.forget_older(name, after.times[name], kept)
    for about, kept in after.about.items():
        work.forget_about(about, kept)
    for name, kept in after.stated.items():
        stated = work.restate(name)
        work.forget_stated(name, kept, stated)
        work.state_unstated(name, anew=name not in before.stated)
    for name in before.stated.keys() - after.stated.keys():
        work.go(work.rows(STATED_BASE + name))
    return work.result()


def next_forgotten(retention: Retention, state: State, now: datetime) -> datetime | None:
    """Return the first time of the clock after `now` at which a fact becomes too old.

    None if none will, or if the engine does not know.
    """
    if not isinstance(state, KnowsWhatIsDue):
        return None
    kept = [(name, retention.times[name], length) for name, length in retention.timed.items()]
    kept += [(about.by, 2, length) for about, length in retention.about.items()]
    kept += [(STATED_BASE + name, 0, length) for name, length in retention.stated.items()]
    due: list[datetime] = []
    for name, position, length in kept:
        for predicate in state.explicit_predicates({name}):
            # What is older has gone, or stays: it is about no member of the class.
            first = state.earliest(predicate, position or predicate.arity, now - length)
            if first is not None:
                due.append(first + length + _INSTANT)
    return min(due, default=None)


class _Forgetting:
    # The facts that a change takes, and what else it adds and removes.

    def __init__(self, change: Change, moment: Moment) -> None:
        self._change = change
        self._now, self._state, self._settings = moment
        self._taken = list(dict.fromkeys(change.add_facts))
        self._loaded, self._unloaded = list(change.loaded), list(change.unloaded)
        self._remove: dict[Fact, None] = {}
        self._add: dict[Fact, None] = {}
        # Late facts by the declaration that they are too old for, and those of files by their batch.
        self._late: Counter[str] = Counter()
        self._late_of_files: dict[int, list[Batch]] = {}

    def result(self) -> Retained:
        warnings = tuple(_late(text, count) for text, count in self._late.items() if count)
        change = replace(
            self._change,
            add_facts=(*self._taken, *self._add),
            remove_facts=tuple(dict.fromkeys((*self._change.remove_facts, *self._remove))),
            loaded=tuple(self._loaded),
            unloaded=tuple(batch for batch in self._unloaded if batch.predicates()),
            warnings=(*self._change.warnings, *warnings),
        )
        return Retained(change, self._late_of_files)

    def go(self, facts: Iterable[Fact]) -> None:
        self._remove.update(dict.fromkeys(facts))

    def rows(self, name: str) -> Iterator[Fact]:
        """Yield the explicit facts of a predicate."""
        for predicate in self._state.explicit_predicates({name}):
            yield from self._state.older(predicate, 0, None)

    def forget_older(self, name: str, position: int, kept: timedelta) -> None:
        """Forget the facts of a predicate whose time is too old."""
        bound, text = self._now - kept, f"@keep {format_predicate(name)} {format_term(duration(kept))}"
        self._drop(
            {f for f in self._taken if f.predicate.name == name and _is_older(f, position, bound)}, text
        )
        for n, batch in enumerate(self._loaded):
            if name in _names(batch.predicates()):
                self._drop_of_file(n, batch.without_older(name, position, bound), text)
        for predicate in self._state.explicit_predicates({name}):
            if position <= predicate.arity:
                self._unloaded.append(self._state.batch_of_older(predicate, position, bound))

    def forget_about(self, about: About, kept: timedelta) -> None:
        """Forget the members of a class that are too old, and all facts about them."""
        bound = self._now - kept
        is_member = Atom(RDF_TYPE, (_SUBJECT, IRI(about.name)))
        is_old = (Atom(about.by, (_SUBJECT, _MOMENT)), Comparison(_MOMENT, "<", date_time(bound)))
        # A moment that the change replaces makes nothing old.
        moments = self._state.answer(Query((_SUBJECT, _MOMENT), (is_member, *is_old)), self._settings).rows
        removed = {fact.args for fact in self._change.remove_facts if fact.predicate == (about.by, 2)}
        for batch in self._change.unloaded:
            if (about.by, 2) in batch.predicates():
                removed.update(fact.args for fact in batch.facts(about.by))
        old = {row[0] for row in moments if tuple(row) not in removed}
        candidates = {fact.args[0] for fact in self._coming(about.by, 2) if _is_older(fact, 2, bound)}
        for batch in self._loaded:
            if (about.by, 2) in batch.predicates():
                _, late = batch.without_older(about.by, 2, bound)
                candidates.update(fact.args[0] for fact in late.facts(about.by))
        coming = {fact.args[0] for fact in self._coming(about.name, 1)}
        batches = [batch for batch in self._loaded if (about.name, 1) in batch.predicates()]
        if coming or batches:
            # What is old may become a member now.
            candidates |= self._subjects(*is_old)
        for batch in batches if candidates else ():
            _, those = batch.without_subjects(candidates)
            coming.update(fact.args[0] for fact in those.facts(about.name))
        old |= candidates & coming
        for subject in candidates - old:
            member = Atom(RDF_TYPE, (subject, IRI(about.name)))
            if self._state.answer(Query((), (member,)), self._settings).rows:
                old.add(subject)
        if not old:
            return
        text = f"@keep about {format_predicate(about.name)} {format_term(duration(kept))}"
        self._drop({fact for fact in self._taken if fact.args and fact.args[0] in old}, text)
        for n, batch in enumerate(self._loaded):
            self._drop_of_file(n, batch.without_subjects(old), text)
        state = self._state
        facts = state.about(old) if isinstance(state, KnowsSubjects) else state.explicit()
        self.go(fact for fact in facts if fact.args and fact.args[0] in old)

    def restate(self, name: str) -> set[Fact]:
        """Note that facts of a predicate are stated now, and forget when those were that are removed.

        Return the facts that are stated.
        """
        stated = {f: None for f in self._taken if f.predicate.name == name}
        stated.update((fact, None) for batch in self._loaded for fact in batch.facts(name))
        removed = (self._change.remove_facts, *(batch.facts(name) for batch in self._change.unloaded))
        gone = [f for f in chain(*removed) if f.predicate.name == name and f not in stated]
        by_args: dict[tuple[Term, ...], list[Fact]] = {}
        if len(stated) + len(gone) > _FEW:
            for row in self.rows(STATED_BASE + name):
                by_args.setdefault(row.args[:-1], []).append(row)
        for fact in (*stated, *gone):
            args = fact.args[: fact.predicate.arity]
            self.go(by_args.get(args, ()) if by_args else self._stated(name, args))
        for row in (_row_of(name, fact, self._now) for fact in stated):
            self._remove.pop(row, None)
            self._add[row] = None
        return set(stated)

    def forget_stated(self, name: str, kept: timedelta, stated: Collection[Fact]) -> None:
        """Forget facts of a predicate that were last stated too long ago, and are not `stated` now."""
        for row in self._older(STATED_BASE + name, 0, self._now - kept):
            fact = _fact_of(row, name)
            if fact not in stated:
                self.go((row, fact))

    def state_unstated(self, name: str, *, anew: bool) -> None:
        """Take facts that nothing says it of to be stated now: from before the clock, or of a slice."""
        counts = Counter[str]()
        for predicate, count in self._state.explicit_counts().items():
            counts[predicate.name] += count
        if not anew and counts[name] == counts[STATED_BASE + name]:
            return
        have = {
            row.args[:-1] for row in (*self.rows(STATED_BASE + name), *self._add) if row not in self._remove
        }
        for fact in self.rows(name):
            row = _row_of(name, fact, self._now)
            if (
                fact not in self._remove
                and fact not in self._change.remove_facts
                and row.args[:-1] not in have
            ):
                self._add[row] = None

    def _drop(self, late: Collection[Fact], text: str) -> None:
        if late:
            self._taken = [fact for fact in self._taken if fact not in late]
            self._late[text] += len(late)

    def _drop_of_file(self, place: int, split: tuple[Batch, Batch], text: str) -> None:
        kept, late = split
        if count := late.size():
            self._loaded[place] = kept
            self._late_of_files.setdefault(place, []).append(late)
            self._late[text] += count

    def _coming(self, name: str, arity: int) -> Iterator[Fact]:
        """Yield the facts of a predicate that are given one by one."""
        return (fact for fact in self._taken if fact.predicate == (name, arity))

    def _subjects(self, *body: Atom | Comparison) -> set[Term]:
        rows = self._state.answer(Query((_SUBJECT,), body), self._settings).rows
        return {row[0] for row in rows}

    def _older(self, name: str, position: int, bound: datetime) -> Iterator[Fact]:
        """Yield the explicit facts of a predicate whose time is earlier; it is the last argument for 0."""
        for predicate in self._state.explicit_predicates({name}):
            place = position or predicate.arity
            if place <= predicate.arity:
                yield from self._state.older(predicate, place, bound)

    def _stated(self, name: str, args: tuple[Term, ...]) -> Iterator[Fact]:
        pattern = Atom(STATED_BASE + name, (*args, _MOMENT))
        for row in self._state.answer(Query((_MOMENT,), (pattern,)), self._settings).rows:
            yield Fact(pattern.relation, (*args, row[0]))


def _late(text: str, count: int) -> Diagnostic:
    return Diagnostic(
        LATE,
        f"{counted(count, 'fact')} older than `{text}` allows: not taken",
        "the clock of the sender may be slow; a longer `@keep` takes them",
        severity="warning",
    )


def _names(predicates: Collection[Predicate]) -> set[str]:
    return {predicate.name for predicate in predicates}


def _is_older(fact: Fact, position: int, bound: datetime) -> bool:
    term = fact.args[position - 1] if position <= fact.predicate.arity else None
    moment = value_of(term) if isinstance(term, Literal) else None
    return isinstance(moment, datetime) and moment < bound


def _row_of(name: str, fact: Fact, now: datetime) -> Fact:
    """Return the fact that says when a fact was last stated."""
    return Fact(STATED_BASE + name, (*fact.args[: fact.predicate.arity], date_time(now)))


def _fact_of(row: Fact, name: str) -> Fact:
    """Return the fact of which another says when it was last stated."""
    args = row.args[:-1]
    return Fact(RDF_TYPE, (*args, IRI(name))) if len(args) == 1 else Fact(name, args)
