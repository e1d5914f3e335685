"""The least text of a set of templates, whatever their variables are called.

A template is a row of words and variables; two sets of templates get the same text exactly when
renaming variables makes one the other. Variables are told apart by colour refinement; where several
stay alike, one of them is singled out and refinement goes on, over every choice, and the least text
wins. Three things keep symmetric sets cheap: templates that share no open variable are settled apart;
of variables that can be swapped one choice is enough; and two choices that end in the same text are a
symmetry of the set, so of the choices that it maps to each other one is enough. A set that is too much
work even so is given up.
"""

from __future__ import annotations

from typing import NamedTuple

# Words are negative numbers, in their order; variables are the others, in no order that matters.
_Template = tuple[int, ...]
_Colours = dict[int, int]

# Templates looked at, two seconds or so. A chain of 400 takes a fifth of it, a cube of 32 corners less.
MOST_WORK = 400_000


class TooAlike(Exception):
    """The variables cannot be told apart within the work allowed."""


def least_text(templates: list[tuple[str | int, ...]]) -> str:
    """Return the text of templates whose variables are numbers from 0, or raise `TooAlike`."""
    words = sorted({i for part in templates for i in part if isinstance(i, str)})
    codes = {word: -1 - n for n, word in enumerate(words)}
    parts = [tuple([codes[i] if isinstance(i, str) else i for i in part]) for part in templates]
    return _Search(words).form(parts, {v: 0 for part in parts for v in part if v >= 0}, 0).text


class _Form(NamedTuple):
    # A text that fixes templates up to the names of their variables, and these in the text's order.
    text: str
    order: list[int]


class _Search:
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._work = 0

    def form(self, parts: list[_Template], colours: _Colours, known: int, *, one_path: bool = False) -> _Form:
        # Variables of a colour of their own are settled: they get the next numbers and become words.
        # What is left falls into pieces that share no open variable, each with a least text of its own.
        # A piece says how many numbers are taken above it, so that none is mistaken for its own.
        colours = self._refined(parts, colours)
        settled = [cell[0] for _, cell in sorted(_cells(colours).items()) if len(cell) == 1]
        first = -1 - len(self._words) - known
        numbers = {v: first - n for n, v in enumerate(settled)}
        parts = [tuple([numbers.get(i, i) for i in part]) for part in parts]
        closed = sorted(self._text(part) for part in parts if max(part) < 0)
        known += len(settled)
        pieces = sorted(self._piece(piece, colours, known, one_path=one_path) for piece in _pieces(parts))
        text = "\n".join([*closed, *(f"{{{known} {piece.text}}}" for piece in pieces)])
        return _Form(text, [*settled, *(v for piece in pieces for v in piece.order)])

    def _piece(self, parts: list[_Template], colours: _Colours, known: int, *, one_path: bool) -> _Form:
        own = {v: colours[v] for part in parts for v in part if v >= 0}
        cells = _cells(own)
        cell = cells[min(cells, key=lambda colour: (len(cells[colour]), colour))]
        if len(cell) == 1:
            return self.form(parts, own, known, one_path=one_path)
        fresh = max(cells) + 1
        if one_path:
            return self.form(parts, {**own, cell[0]: fresh}, known, one_path=True)
        tried: list[int] = []
        found: dict[str, list[int]] = {}
        symmetries = _Symmetries(parts)
        for v in cell:
            if any(symmetries.alike(v, w) for w in tried):
                continue
            singled = {**own, v: fresh}
            # Where all that is left is symmetric too, any path ends in a text that was found before.
            form = self.form(parts, singled, known, one_path=bool(tried))
            if tried and form.text not in found:
                form = self.form(parts, singled, known)
            symmetries.add(found.setdefault(form.text, form.order), form.order)
            tried.append(v)
        return _Form(*min(found.items()))

    def _refined(self, parts: list[_Template], colours: _Colours) -> _Colours:
        # A variable's new colour is its old one and, for each place it stands at, what else stands there.
        spots = [
            (part, [(v, tuple([n for n, i in enumerate(part) if i == v])) for v in set(part) if v >= 0])
            for part in parts
        ]
        count = len(set(colours.values()))
        while True:
            self._spend(len(parts))
            places: dict[int, list[tuple[_Template, tuple[int, ...]]]] = {v: [] for v in colours}
            for part, own in spots:
                shape = tuple([colours.get(i, i) for i in part])
                for v, where in own:
                    places[v].append((shape, where))
            keys = {v: (colour, tuple(sorted(places[v]))) for v, colour in colours.items()}
            order = {key: n for n, key in enumerate(sorted(set(keys.values())))}
            colours = {v: order[key] for v, key in keys.items()}
            if len(order) in {count, len(colours)}:
                return colours
            count = len(order)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MOST_WORK:
            raise TooAlike

    def _text(self, part: _Template) -> str:
        taken = len(self._words)
        return " ".join([self._words[-1 - i] if i >= -taken else f"?{-1 - i - taken}" for i in part])


class _Symmetries:
    """What is known of the symmetries of some parts: which variables they map to each other."""

    def __init__(self, parts: list[_Template]) -> None:
        self._parts = frozenset(parts)
        self._holding: dict[int, list[_Template]] = {}
        for part in parts:
            for v in set(part):
                self._holding.setdefault(v, []).append(part)
        self._above: dict[int, int] = {}

    def add(self, order: list[int], image: list[int]) -> None:
        """Take note of a symmetry: each variable of the one order becomes that of the other."""
        for v, w in zip(order, image, strict=True):
            one, other = self._root(v), self._root(w)
            if one != other:
                self._above[one] = other

    def alike(self, v: int, w: int) -> bool:
        """Whether some symmetry is known, or easily seen, to map one variable to the other."""
        return self._root(v) == self._root(w) or all(
            tuple([w if i == v else v if i == w else i for i in part]) in self._parts
            for part in (*self._holding[v], *self._holding[w])
        )

    def _root(self, v: int) -> int:
        while v in self._above:
            v = self._above[v]
        return v


def _cells(colours: _Colours) -> dict[int, list[int]]:
    cells: dict[int, list[int]] = {}
    for v, colour in colours.items():
        cells.setdefault(colour, []).append(v)
    return cells


def _pieces(parts: list[_Template]) -> list[list[_Template]]:
    pieces: list[tuple[set[int], list[_Template]]] = []
    for part in parts:
        names = {i for i in part if i >= 0}
        if not names:
            continue
        joined = [part]
        apart = []
        for piece in pieces:
            if piece[0] & names:
                names |= piece[0]
                joined += piece[1]
            else:
                apart.append(piece)
        pieces = [*apart, (names, joined)]
    return [piece for _, piece in pieces]
