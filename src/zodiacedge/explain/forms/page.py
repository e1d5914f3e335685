"""An explanation as nested lists that fold: one page without external resources, or a part of a notebook.

Folding is that of HTML itself (`<details>`), so a notebook needs no script. Browsers do not read lists of any
depth: what lies deeper than `_LONGEST` facts follows as a list of its own, and is linked.
"""

from __future__ import annotations

from hashlib import blake2b
from html import escape
from typing import TYPE_CHECKING

from zodiacedge.explain.forms.explanation import DEPTH
from zodiacedge.explain.forms.lines import has_children
from zodiacedge.explain.forms.outlines import outline
from zodiacedge.util.html import filled_page, web_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.explain.forms.lines import Outline, OutlineLine, Piece
    from zodiacedge.explain.forms.outlines import Explained

_PACKAGE = "zodiacedge.explain.forms"
_LONGEST = 24
# A notebook shows so many lines; the page has all.
_MOST_LINES = 500


def to_html(answer: Explained, depth: int | None = DEPTH) -> str:
    """Return a page; it holds everything, open down to a depth."""
    shown = outline(answer, None, _LONGEST)
    return page(shown.title, explanation(shown, depth))


def to_fragment(answer: Explained) -> str:
    """Return the lists with their style, for a notebook."""
    shown = outline(answer, DEPTH)
    ids = blake2b(repr(shown.lines).encode(), digest_size=4).hexdigest()
    body = explanation(shown, 2, f"z{ids}-", _MOST_LINES)
    return f'<div class="zodiac"><style>{web_file(_PACKAGE, "style.css")}</style>{body}</div>'


def page(title: str, body: str, style: str = "") -> str:
    """Return a page with a title, buttons to fold and unfold, and a body of HTML."""
    styles = web_file(_PACKAGE, "style.css") + web_file(_PACKAGE, "page.css") + style
    script = web_file(_PACKAGE, "page.js")
    return filled_page(_PACKAGE, title=escape(title), style=styles, body=body, script=script)


def explanation(shown: Outline, depth: int | None, ids: str = "", most: int | None = None) -> str:
    """Return an outline as nested lists, its rules and its remarks; `ids` begins the names of places."""
    parts = ["".join(_lists(shown.lines[:most], depth, ids))]
    if most is not None and len(shown.lines) > most:
        parts.append(f'<p class="note">… and {len(shown.lines) - most:,} more lines</p>')
    if shown.rules:
        items = "".join(
            f'<li id="{ids}{_rule_id(name)}"><a>{escape(name)}</a>: '
            f"<code>{escape(text.removeprefix(f'{name}: '))}</code></li>"
            for name, text in shown.rules
        )
        parts.append(f'<ul class="rules">{items}</ul>')
    parts += [f'<p class="note">{escape(note)}</p>' for note in shown.notes]
    return "\n".join(parts)


def _lists(lines: Sequence[OutlineLine], depth: int | None, ids: str) -> Iterator[str]:
    yield '<ul class="lines">'
    ends: list[str] = []
    for line, folds in zip(lines, has_children(lines), strict=True):
        while len(ends) > line.level:
            yield ends.pop()
        place = f' id="{ids}f{line.number}"' if line.number and line.refers is None else ""
        content = _content(line, ids)
        if folds:
            unfolded = " open" if depth is None or line.depth < depth else ""
            yield f'<li{place}><details{unfolded}><summary class="{line.kind}">{content}</summary><ul>'
            ends.append("</ul></details></li>\n")
        else:
            yield f'<li{place}><span class="line {line.kind}">{content}</span></li>\n'
    yield from reversed(ends)
    yield "</ul>"


def _content(line: OutlineLine, ids: str) -> str:
    first, *rest = line.pieces
    number = ""
    if line.number:
        number = f' <span class="number">[{line.number}]</span>'
        if line.refers is not None:
            number = f' <a href="#{ids}f{line.number}">see [{line.number}]</a>'
    return _piece(first, ids) + number + "".join(_piece(piece, ids) for piece in rest)


def _piece(piece: Piece, ids: str) -> str:
    text = escape(piece.text)
    match piece.tone:
        case "code":
            return f"<code>{text}</code>"
        case "rule":
            return f'<a href="#{ids}{_rule_id(piece.text)}">{text}</a>'
        case "plain":
            return text
        case tone:
            return f'<span class="{tone}">{text}</span>' if text else ""


def _rule_id(name: str) -> str:
    return f"rule-{escape(name.replace(' ', '-'))}"
