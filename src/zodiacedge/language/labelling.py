"""Canonical labelling: the least text of a set of templates, independent of variable names.

A template is a row of words and variables; two sets of templates get the same text exactly when
renaming variables turns one into the other. Variables are distinguished by colour refinement; where
several keep the same colour, each of them in turn gets a unique colour, refinement continues, and the
least text wins. Three things keep symmetric sets cheap: templates that share no open variable are
labelled separately; of variables that can be swapped only one is tried; and two choices with the same
text are an automorphism of the set, so of the choices that it maps to each other only one is tried. The
search stops after a number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

# Words are negative numbers, in sorted order; variables are numbers from 0, in any order.
_Template = tuple[int, ...]
_Colours = dict[int, int]

# Templates visited, about two seconds. A chain of 400 takes a fifth of it, a cube of 32 corners less.
MAX_WORK = 400_000


class TooSymmetric(Exception):
    """The variables cannot be distinguished within the limit of steps."""


def least_text(templates: list[tuple[str | int, ...]]) -> str:
    """Return the text of templates whose variables are numbers from 0, or raise `TooSymmetric`."""
    words = sorted({i for template in templates for i in template if isinstance(i, str)})
    codes = {word: -1 - n for n, word in enumerate(words)}
    coded = [tuple([codes[i] if isinstance(i, str) else i for i in template]) for template in templates]
    return _Search(words).form(coded, {v: 0 for template in coded for v in template if v >= 0}, 0).text


class _Form(NamedTuple):
    # A text that determines templates up to variable names, and the variables in the order of the text.
    text: str
    order: list[int]


class _Search:
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._work = 0

    def form(
        self, templates: list[_Template], colours: _Colours, known: int, *, one_path: bool = False
    ) -> _Form:
        # Variables with a colour of their own are settled: they get the next numbers and become words.
        # The other templates fall into groups that share no open variable, each with its own least text.
        # The text of a group has the number of settled variables, so that numbers stay unambiguous.
        colours = self._refined(templates, colours)
        settled = [cell[0] for _, cell in sorted(_cells(colours).items()) if len(cell) == 1]
        first = -1 - len(self._words) - known
        numbers = {v: first - n for n, v in enumerate(settled)}
        templates = [tuple([numbers.get(i, i) for i in template]) for template in templates]
        closed = sorted(self._text(template) for template in templates if max(template) < 0)
        known += len(settled)
        groups = sorted(self._group(group, colours, known, one_path=one_path) for group in _groups(templates))
        text = "\n".join([*closed, *(f"{{{known} {group.text}}}" for group in groups)])
        return _Form(text, [*settled, *(v for group in groups for v in group.order)])

    def _group(self, templates: list[_Template], colours: _Colours, known: int, *, one_path: bool) -> _Form:
        own = {v: colours[v] for template in templates for v in template if v >= 0}
        cells = _cells(own)
        cell = cells[min(cells, key=lambda colour: (len(cells[colour]), colour))]
        if len(cell) == 1:
            return self.form(templates, own, known, one_path=one_path)
        fresh = max(cells) + 1
        if one_path:
            return self.form(templates, {**own, cell[0]: fresh}, known, one_path=True)
        tried: list[int] = []
        orders: dict[str, list[int]] = {}
        symmetries = _Automorphisms(templates)
        for v in cell:
            if any(symmetries.equivalent(v, w) for w in tried):
                continue
            individualised = {**own, v: fresh}
            # If the rest is symmetric too, any path ends in a text that is known already.
            form = self.form(templates, individualised, known, one_path=bool(tried))
            if tried and form.text not in orders:
                form = self.form(templates, individualised, known)
            symmetries.add(orders.setdefault(form.text, form.order), form.order)
            tried.append(v)
        return _Form(*min(orders.items()))

    def _refined(self, templates: list[_Template], colours: _Colours) -> _Colours:
        # A variable's new colour: its old one and, for each occurrence, the colours of the template.
        occurrences = [
            (
                template,
                [(v, tuple([n for n, i in enumerate(template) if i == v])) for v in set(template) if v >= 0],
            )
            for template in templates
        ]
        count = len(set(colours.values()))
        while True:
            self._spend(len(templates))
            signatures: dict[int, list[tuple[_Template, tuple[int, ...]]]] = {v: [] for v in colours}
            for template, own in occurrences:
                shape = tuple([colours.get(i, i) for i in template])
                for v, positions in own:
                    signatures[v].append((shape, positions))
            keys = {v: (colour, tuple(sorted(signatures[v]))) for v, colour in colours.items()}
            order = {key: n for n, key in enumerate(sorted(set(keys.values())))}
            colours = {v: order[key] for v, key in keys.items()}
            if len(order) in {count, len(colours)}:
                return colours
            count = len(order)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TooSymmetric

    def _text(self, template: _Template) -> str:
        taken = len(self._words)
        return " ".join([self._words[-1 - i] if i >= -taken else f"?{-1 - i - taken}" for i in template])


class _Automorphisms:
    """Known automorphisms of templates, as classes of variables that they map to each other."""

    def __init__(self, templates: list[_Template]) -> None:
        self._templates = frozenset(templates)
        self._occurrences: dict[int, list[_Template]] = {}
        for template in templates:
            for v in set(template):
                self._occurrences.setdefault(v, []).append(template)
        self._parent: dict[int, int] = {}

    def add(self, order: list[int], image: list[int]) -> None:
        """Add a symmetry that maps each variable of one order to that of the other."""
        for v, w in zip(order, image, strict=True):
            root, image_root = self._root(v), self._root(w)
            if root != image_root:
                self._parent[root] = image_root

    def equivalent(self, v: int, w: int) -> bool:
        """Whether a known symmetry, or a swap, maps one variable to the other."""
        return self._root(v) == self._root(w) or all(
            tuple([w if i == v else v if i == w else i for i in template]) in self._templates
            for template in (*self._occurrences[v], *self._occurrences[w])
        )

    def _root(self, v: int) -> int:
        while v in self._parent:
            v = self._parent[v]
        return v


def _cells(colours: _Colours) -> dict[int, list[int]]:
    cells: dict[int, list[int]] = {}
    for v, colour in colours.items():
        cells.setdefault(colour, []).append(v)
    return cells


def _groups(templates: list[_Template]) -> list[list[_Template]]:
    groups: list[tuple[set[int], list[_Template]]] = []
    for template in templates:
        names = {i for i in template if i >= 0}
        if not names:
            continue
        joined = [template]
        separate = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                joined += group[1]
            else:
                separate.append(group)
        groups = [*separate, (names, joined)]
    return [group for _, group in groups]
