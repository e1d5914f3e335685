r"""Whether a pattern of Python's `re` matches somewhere in a text, in time linear in the text.

`re` tries alternatives one after the other. Where one repetition contains another, `(a+)+$`, or an
alternative, `(a|a)*$`, the ways to match can double with every character of the text. Here a text is read
once, and all states that the pattern can be in are kept as a set. Repetitions with a number are written out.

Only the question whether there is a match is answered: no groups. Patterns with back-references are left to
`re`, and so are those that need too many states.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from re import _compiler as compiler  # type: ignore[attr-defined]  # no public name has the parsed pattern
from re import _constants as codes  # type: ignore[attr-defined]  # as above
from re import _parser as parser  # type: ignore[attr-defined]  # as above
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    # What `re` parses: codes with their arguments.
    _Items = Iterable[tuple[object, Any]]

# How often `re` may try before a set of states is the better way: some 0.1 s.
_MOST_TRIES = 10_000_000
_MOST_STATES = 10_000
_REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT})
_CONDITIONS = frozenset({codes.AT, codes.ASSERT, codes.ASSERT_NOT})
_CHARACTERS = frozenset({codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN})


class Expression:
    """A compiled pattern that is searched for by `re`, or by sets of states where `re` may take for ever."""

    def __init__(self, pattern: str, flags: int) -> None:
        """Compile a pattern of `re`.

        Raises:
            re.error: If it is not one.
        """
        self._compiled = re.compile(pattern, flags)
        self._cost = _Cost.of(parser.parse(pattern, flags))
        self._states: _States | None = None

    def matches(self, text: str) -> bool:
        """Return whether a part of a text matches."""
        if self._cost.tries(len(text)) > _MOST_TRIES:
            if self._states is None:
                self._states = _States.of(self._compiled)
            if self._states.start is not None:
                return self._states.match(text)
        return self._compiled.search(text) is not None


@dataclass
class _Cost:
    """How often `re` may try to match a pattern."""

    choices: int = 1
    """The number of choices that do not depend on the text."""
    unbounded: int = 0
    """The number of repetitions without an upper bound."""
    nested: bool = False
    """Whether a repetition contains a choice."""

    @classmethod
    def of(cls, items: _Items) -> _Cost:
        """Return the cost of a parsed pattern."""
        cost = cls()
        for code, argument in items:
            parts: list[Any] = []
            if code in _REPEATS:
                low, high, part = argument
                parts = [part]
                if high == codes.MAXREPEAT:
                    cost.unbounded += 1
                else:
                    cost.choices *= high - low + 1
            elif code is codes.BRANCH:
                parts = argument[1]
                cost.choices *= len(parts)
            elif code is codes.SUBPATTERN:
                parts = [argument[3]]
            for inner in map(cls.of, parts):
                repeated = code in _REPEATS and argument[1] > 1
                cost.nested |= inner.nested or (repeated and (inner.choices > 1 or inner.unbounded > 0))
                cost.choices *= inner.choices
                cost.unbounded += inner.unbounded
        return cost

    def tries(self, length: int) -> float:
        """Return a bound on the tries for a text of a length."""
        if self.nested:
            return math.inf
        return float(self.choices) * float(length + 1) ** min(self.unbounded + 1, 100)


@dataclass
class _States:
    """A pattern as a nondeterministic automaton: states are numbers, and 0 is the end."""

    flags: int
    start: int | None = None
    tests: list[re.Pattern[str] | None] = field(default_factory=lambda: [None])
    """What a state tests: the next character, or a condition without a character; None for a choice."""
    is_character: list[bool] = field(default_factory=lambda: [False])
    following: list[tuple[int, ...]] = field(default_factory=lambda: [()])

    @classmethod
    def of(cls, compiled: re.Pattern[str]) -> _States:
        """Return the automaton of a pattern; without a start if it is too large or refers back."""
        states = cls(compiled.flags)
        try:
            states.start = states._sequence(parser.parse(compiled.pattern, compiled.flags), 0)
        except OverflowError:
            return cls(compiled.flags)
        return states

    def match(self, text: str) -> bool:
        """Return whether a part of a text matches."""
        known: dict[tuple[int, str], bool] = {}
        current: set[int] = set()
        for at in range(len(text) + 1):
            reached = self._reachable(current, text, at)
            if 0 in reached:
                return True
            current = set()
            if at == len(text):
                break
            character = text[at]
            for state in reached:
                test = self.tests[state]
                if self.is_character[state] and test is not None:
                    found = known.get((state, character))
                    if found is None:
                        found = known[state, character] = test.match(character) is not None
                    if found:
                        current.update(self.following[state])
        return False

    def _reachable(self, states: set[int], text: str, at: int) -> set[int]:
        """Return states with those that need no character; a match may start anywhere."""
        reached: set[int] = set()
        waiting = [*states, self.start or 0]
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached.add(state)
            test = self.tests[state]
            if not self.is_character[state] and (test is None or test.match(text, at)):
                waiting += self.following[state]
        return reached

    def _sequence(self, items: _Items, end: int) -> int:
        """Add the states of a parsed pattern that is followed by a state; return the first."""
        for item in reversed(list(items)):
            end = self._item(item, end)
        return end

    def _item(self, item: tuple[object, Any], end: int) -> int:
        code, argument = item
        if code in _CHARACTERS or code in _CONDITIONS:
            test = parser.SubPattern(parser.State(), [(code, argument)])
            return self._add((end,), compiler.compile(test, self.flags), is_character=code in _CHARACTERS)
        if code is codes.BRANCH:
            return self._add(tuple(self._sequence(part, end) for part in argument[1]))
        if code is codes.SUBPATTERN:
            return self._sequence(argument[3], end)
        if code not in _REPEATS:
            raise OverflowError  # a back-reference
        low, high, part = argument
        if high == codes.MAXREPEAT:
            first = self._add(())
            self.following[first] = (self._sequence(part, first), end)
        else:
            first = end
            for _ in range(high - low):
                first = self._add((self._sequence(part, first), end))
        for _ in range(low):
            first = self._sequence(part, first)
        return first

    def _add(
        self, following: tuple[int, ...], test: re.Pattern[str] | None = None, *, is_character: bool = False
    ) -> int:
        if len(self.tests) >= _MOST_STATES:
            raise OverflowError
        self.tests.append(test)
        self.is_character.append(is_character)
        self.following.append(following)
        return len(self.tests) - 1
