"""Subscriptions: callbacks with the net change of a commit.

The committing thread calls subscribers in the order of their subscriptions, before the next change begins.
Only facts of predicates with a subscription are listed. The exceptions of callbacks do not undo the commit or
skip other callbacks: they are raised as one group after the last call.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.language.ast import Predicate
from zodiacedge.language.names import is_named, spelled
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Fact

# A name without brackets has no parenthesis, and behind a slash it has its arity.
_PREDICATE = re.compile(r"[^/()]+(/\d+)?")


@dataclass(frozen=True, slots=True)
class Notice:
    """The net change of one commit for one subscription."""

    version: int
    inserted: frozenset[Fact]
    deleted: frozenset[Fact]


@dataclass(frozen=True, eq=False)
class Subscription:
    """A callback for the commits that concern a predicate, until it is cancelled.

    `name` is a predicate, with or without its arity; all predicates if it is empty. A full IRI is in angle
    brackets, so that a number at its end is not read as an arity. `rdf:type` means all classes.
    """

    name: str
    callback: Callable[[Notice], object]
    _registered: dict[Subscription, None] = field(repr=False)

    @property
    def active(self) -> bool:
        """Whether the callback is still called."""
        return self in self._registered

    def cancel(self) -> None:
        """Stop the callbacks; further calls have no effect."""
        self._registered.pop(self, None)

    def wants(self, predicate: Predicate) -> bool:
        """Return whether the subscription concerns a predicate."""
        if not self.name or is_named(predicate, self.name):
            return True
        # Members of a class are facts of the class and of rdf:type.
        return predicate.arity == 1 and is_named(_ALL_CLASSES, self.name)


_ALL_CLASSES = Predicate(RDF_TYPE, 2)


class Subscribers:
    """All subscriptions, and the commits that wait for their callbacks."""

    def __init__(self) -> None:
        """Start without subscriptions."""
        self._all: dict[Subscription, None] = {}
        self._waiting: deque[tuple[ChangeReport, tuple[Subscription, ...]]] = deque()
        self._notifying = False

    def __len__(self) -> int:
        """Return the number of subscriptions."""
        return len(self._all)

    def add(self, name: str, callback: Callable[[Notice], object]) -> Subscription:
        """Add a subscription to a predicate, from the next commit on."""
        _need_callable(callback)
        subscription = Subscription(name, callback, self._all)
        self._all[subscription] = None
        return subscription

    def notify(self, *reports: ChangeReport) -> None:
        """Call the callbacks for commits; a commit made by a callback waits until they have returned."""
        if not self._all or not reports:
            return
        # A subscription made while these commits wait begins with the next commit.
        self._waiting.extend((report, tuple(self._all)) for report in reports)
        if self._notifying:
            return
        problems: list[BaseException] = []
        self._notifying = True
        try:
            while self._waiting:
                _notify_all(*self._waiting.popleft(), problems)
        finally:
            self._notifying = False
            self._waiting.clear()
        _raise(reports[-1], problems)


def _notify_all(
    report: ChangeReport, subscriptions: tuple[Subscription, ...], problems: list[BaseException]
) -> None:
    notices: dict[str, Notice] = {}
    for subscription in subscriptions:
        try:
            notice = notices.get(subscription.name)
            if notice is None:
                notice = Notice(report.version_after, *report.net.facts(subscription.wants))
                notices[subscription.name] = notice
            if subscription.active and (notice.inserted or notice.deleted):
                subscription.callback(notice)
        except BaseException as problem:  # noqa: BLE001 - it is raised after the last callback
            problems.append(problem)


def _raise(report: ChangeReport, problems: list[BaseException]) -> None:
    for problem in problems:
        if not isinstance(problem, Exception):
            # A handler of KeyboardInterrupt does not look into groups.
            raise problem
    failed = [problem for problem in problems if isinstance(problem, Exception)]
    if failed:
        raise ExceptionGroup(
            f"version {report.version_after} is committed, but {len(failed)} of its subscribers failed",
            failed,
        )


def _need_callable(given: object) -> None:
    if not callable(given):
        hint = "it is called with a notice: kb.subscribe('alarm/1', print)"
        raise UsageProblem(Diagnostic("U013", f"expected a function, found {given!r}", hint))


def predicate_name(given: object, prefixes: Mapping[str, str]) -> str:
    """Return the full name of a predicate to subscribe to, with the arity if given.

    The predicate is written as in a program, `p`, `ex:p` or `<http://e/p>`, with or without `/` and its
    arity; or as a full IRI, as in counts.
    """
    match given:
        case None:
            return ""
        case IRI(value=name):
            return f"<{name}>"
        case (str() as name, int() as arity):
            return f"<{name}>/{arity}"
        case str():
            pass
        case _:
            hint = "name it as in a program, 'alarm' or 'alarm/1', or give an IRI"
            raise UsageProblem(Diagnostic("U013", f"expected a predicate, found {given!r}", hint))
    name = spelled(given, prefixes)
    is_absolute = name == given and ":" in given
    if not (is_absolute or given.startswith("<") or _PREDICATE.fullmatch(given)):
        hint = "write the name, with or without the number of arguments: 'hot', 'hot/1', '<http://e/hot>/1'"
        raise UsageProblem(Diagnostic("U013", f"expected a predicate, found {given!r}", hint))
    return name
