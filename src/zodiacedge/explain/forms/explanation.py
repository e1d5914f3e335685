"""What every explanation is: a value that can be written as text, Markdown, HTML, SVG and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from zodiacedge.explain.forms.outlines import Explained

# Facts are folded below this depth unless the caller says otherwise.
DEPTH = 6


class Explanation:
    """The forms of an explanation; the asked facts have depth 0, and facts below `depth` are folded."""

    __slots__ = ()

    def to_text(self, depth: int | None = DEPTH) -> str:
        """Return a tree of lines; None folds nothing."""
        from zodiacedge.explain.forms.text import to_text  # noqa: PLC0415 - imports the answers

        return to_text(self._explained, _given(depth))

    def to_markdown(self, depth: int | None = DEPTH) -> str:
        """Return nested lists, to paste into a ticket; None folds nothing."""
        from zodiacedge.explain.forms.markdown import to_markdown  # noqa: PLC0415 - imports the answers

        return to_markdown(self._explained, _given(depth))

    def to_html(self, depth: int | None = DEPTH) -> str:
        """Return a page without external resources; it holds everything, open down to a depth."""
        from zodiacedge.explain.forms.page import to_html  # noqa: PLC0415 - imports the answers

        return to_html(self._explained, _given(depth))

    def to_svg(self) -> str:
        """Return a picture."""
        from zodiacedge.explain.forms.svg import to_svg  # noqa: PLC0415 - loads the layout library

        return to_svg(self._explained)

    def to_json(self) -> str:
        """Return a JSON document, with IRIs in full and all digits of numbers; `docs/explain.md` has it."""
        from zodiacedge.explain.forms.document import to_json  # noqa: PLC0415 - imports the answers

        return to_json(self._explained)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document as plain values."""
        from json import loads  # noqa: PLC0415 - only here

        return cast("dict[str, object]", loads(self.to_json()))

    def __str__(self) -> str:
        """Return the answer as a tree of lines."""
        return self.to_text()

    def __repr__(self) -> str:
        """Return the kind of the answer and its first line."""
        return f"<{type(self).__name__} {self.to_text(0).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        """Return nested lists for a notebook."""
        from zodiacedge.explain.forms.page import to_fragment  # noqa: PLC0415 - imports the answers

        return to_fragment(self._explained)

    def _repr_markdown_(self) -> str:
        """Return nested lists for what shows notebooks without HTML."""
        return self.to_markdown()

    @property
    def _explained(self) -> Explained:
        return cast("Explained", self)


def _given(depth: object) -> int | None:
    """Return a depth, or raise."""
    if depth is None or (isinstance(depth, int) and not isinstance(depth, bool) and depth >= 0):
        return depth
    note = "write it as an int of 0 or more, or None to fold nothing: proof.to_text(depth=3)"
    raise UsageProblem(Diagnostic("U013", f"expected a depth, found {depth!r}", note))
