"""Subscriptions: who is told what a commit made visible, and what is visible no more.

Subscribers are called one after the other in the order they came, by the thread that committed, before the
next change begins. Only facts that somebody wants to hear of are listed. What a subscriber raises cannot
undo the commit and keeps nobody else from being called: all of it is raised together behind the last call.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, UsageProblem, nearest
from zodiacedge.language.ast import Predicate
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.terms import IRI, RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.language.ast import Fact


@dataclass(frozen=True, slots=True)
class Notice:
    """What one commit did to the facts that somebody subscribed to."""

    version: int
    inserted: frozenset[Fact]
    deleted: frozenset[Fact]


@dataclass(frozen=True, eq=False)
class Subscription:
    """Somebody who is told of commits, until it is cancelled.

    `name` is that of a predicate, with or without its arity; all predicates if it is empty. A whole IRI
    stands in angle brackets, so that no number at its end is taken for an arity. `rdf:type` is all classes.
    """

    name: str
    callback: Callable[[Notice], object]
    _among: dict[Subscription, None] = field(repr=False)

    @property
    def active(self) -> bool:
        """Whether it is still told."""
        return self in self._among

    def cancel(self) -> None:
        """Be told no more; once is enough."""
        self._among.pop(self, None)

    def wants(self, predicate: Predicate) -> bool:
        """Whether it is to hear of a predicate."""
        if self.name in _spellings(predicate):
            return True
        # Members of a class are facts of the class, and of rdf:type as well.
        return predicate.arity == 1 and self.name in _ALL_CLASSES


def _spellings(predicate: Predicate) -> set[str]:
    name, arity = predicate
    return {"", name, f"{name}/{arity}", f"<{name}>", f"<{name}>/{arity}"}


_ALL_CLASSES = _spellings(Predicate(RDF_TYPE, 2))


class Subscribers:
    """All who are told, and the commits they were not told of yet."""

    def __init__(self) -> None:
        """Start with nobody."""
        self._all: dict[Subscription, None] = {}
        self._waiting: deque[tuple[ChangeReport, tuple[Subscription, ...]]] = deque()
        self._telling = False

    def __len__(self) -> int:
        """Return how many want to be told."""
        return len(self._all)

    def add(self, name: str, callback: Callable[[Notice], object]) -> Subscription:
        """Let somebody be told of a predicate from the next commit on."""
        _need_callable(callback)
        found = Subscription(name, callback, self._all)
        self._all[found] = None
        return found

    def tell(self, report: ChangeReport) -> None:
        """Tell of a commit. One that a subscriber makes comes when all were told of the one before."""
        if not self._all:
            return
        # Who comes while this commit waits is told from the next one on.
        self._waiting.append((report, tuple(self._all)))
        if self._telling:
            return
        problems: list[BaseException] = []
        self._telling = True
        try:
            while self._waiting:
                _tell_all(*self._waiting.popleft(), problems)
        finally:
            self._telling = False
            self._waiting.clear()
        _raise(report, problems)


def _tell_all(
    report: ChangeReport, subscriptions: tuple[Subscription, ...], problems: list[BaseException]
) -> None:
    notices: dict[str, Notice] = {}
    for one in subscriptions:
        try:
            notice = notices.get(one.name)
            if notice is None:
                notice = Notice(report.version_after, *report.net.facts(one.wants))
                notices[one.name] = notice
            if one.active and (notice.inserted or notice.deleted):
                one.callback(notice)
        except BaseException as problem:  # noqa: BLE001 - it is raised when all were told
            problems.append(problem)


def _raise(report: ChangeReport, problems: list[BaseException]) -> None:
    for problem in problems:
        if not isinstance(problem, Exception):
            # Ctrl-C, say: who waits for it does not look into groups.
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
    """Return the full name of what somebody subscribes to, with the arity if there is one.

    A predicate is given as in a program, `p`, `ex:p` or `<http://e/p>`, with or without `/` and its arity; or
    as a whole IRI, as counts name it.
    """
    match given:
        case None | "":
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
    if given.startswith("<"):
        if ">" not in given:
            raise UsageProblem(
                Diagnostic("U013", f"expected a predicate, found {given!r}", "close it with >")
            )
        return given
    prefix, colon, rest = given.partition(":")
    if not colon or rest.startswith("//"):
        return given
    known = {**DEFAULT_PREFIXES, **prefixes}
    if prefix not in known:
        near = nearest(prefix, tuple(known))
        hint = f"did you mean {near}:?" if near else f"write the whole IRI: <{given}>"
        raise UsageProblem(Diagnostic("U012", f"there is no prefix {prefix}: to subscribe with", hint))
    local, slash, number = rest.rpartition("/")
    if not slash or not number.isdigit():
        return f"<{known[prefix]}{rest}>"
    return f"<{known[prefix]}{local}>/{number}"
