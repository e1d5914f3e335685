"""An explanation as an SVG picture: what was asked on top, and below it what it rests on.

An arrow leads from what is needed to what needs it; it is dashed for a row of an aggregate. Positions come
from the layout of rule graphs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from zodiacedge.explain.forms.cards import cards_of
from zodiacedge.explain.forms.outlines import title_of
from zodiacedge.explain.forms.words import Words
from zodiacedge.graph.draw.layout import Box, arrange
from zodiacedge.graph.draw.svg import FONT, clipped, text_width

if TYPE_CHECKING:
    from zodiacedge.explain.forms.cards import Card
    from zodiacedge.explain.forms.outlines import Explained
    from zodiacedge.graph.draw.layout import Layout

_MARGIN = 24.0
_PADDING = 11.0
_LINE = 17.0
_TITLE, _SMALL = 13.5, 12.0
_WIDEST = 460.0
_MOST_LINES = 14
_STYLE = f"""
  text {{ font-family: {FONT}; fill: #1f2937; }}
  .title {{ font-size: {_TITLE}px; font-weight: 600; }}
  .subtitle {{ font-size: {_SMALL}px; fill: #5b6472; }}
  .text {{ font-size: {_SMALL}px; }}
  rect {{ fill: #ffffff; stroke: #64748b; stroke-width: 1.2; }}
  .asked {{ fill: #eef4ff; stroke: #3b6fd4; stroke-width: 2; }}
  .explicit {{ fill: #f1f5f9; stroke: #94a3b8; }}
  .fails {{ fill: #fef2f2; stroke: #b91c1c; }}
  .page {{ stroke: none; }}
  .need {{ fill: none; stroke: #64748b; stroke-width: 1.4; }}
  .row {{ stroke-dasharray: 6 4; }}
"""
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9.5" refY="5" markerWidth="9" markerHeight="9" '
    'markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
    '<path d="M0 0.8L10 5L0 9.2z" fill="#64748b"/></marker></defs>'
)


def to_svg(answer: Explained) -> str:
    """Return the picture."""
    drawn = cards_of(answer)
    sizes = {number: _size(card) for number, card in drawn.cards.items()}
    boxes = {number: Box(*sizes[number], card.level) for number, card in drawn.cards.items()}
    layout = arrange(boxes, drawn.needs)
    note = [drawn.left_out] if drawn.left_out else []
    width = layout.width + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + _LINE * len(note)
    arrows = [_arrow(layout, pair, dashed=row) for pair, row in drawn.needs.items()]
    cards = [_card(card, sizes[n], *layout.corners[n]) for n, card in drawn.cards.items()]
    at = layout.height + _LINE + 4.0
    remarks = [f'<text class="subtitle" y="{at:.1f}">{escape(text)}</text>' for text in note]
    extent = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {extent} role="img">',
            f"<title>{escape(title_of(answer, Words(answer.prefixes)))}</title>",
            f"<style>{_STYLE}</style>",
            _TIP,
            '<rect class="page" width="100%" height="100%"/>',
            f'<g transform="translate({_MARGIN} {_MARGIN})">',
            *arrows,
            *cards,
            *remarks,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _rows(card: Card) -> list[tuple[str, str, float]]:
    """Return the lines of a box with class and size."""
    lines = list(card.lines[:_MOST_LINES])
    if len(card.lines) > _MOST_LINES:
        lines.append(f"… and {len(card.lines) - _MOST_LINES} more")
    subtitle = [("subtitle", card.subtitle, _SMALL)] if card.subtitle else []
    return [("title", card.title, _TITLE), *subtitle, *(("text", line, _SMALL) for line in lines)]


def _size(card: Card) -> tuple[float, float]:
    rows = _rows(card)
    widest = max(text_width(clipped(text, size, _WIDEST), size) * 1.04 for _, text, size in rows)
    return widest + 2 * _PADDING, len(rows) * _LINE + 2 * _PADDING - 3.0


def _card(card: Card, size: tuple[float, float], x: float, y: float) -> str:
    width, height = size
    tooltip = "\n".join([card.title, card.subtitle, *card.lines]).strip()
    parts = [
        f'<g transform="translate({x:.1f} {y:.1f})"><title>{escape(tooltip)}</title>',
        f'<rect class="{card.kind}" width="{width:.1f}" height="{height:.1f}" rx="7"/>',
    ]
    at = _PADDING - 4.0
    for kind, text, letters in _rows(card):
        at += _LINE
        shown = escape(clipped(text, letters, _WIDEST))
        parts.append(f'<text class="{kind}" x="{_PADDING}" y="{at:.1f}">{shown}</text>')
    return "".join([*parts, "</g>"])


def _arrow(layout: Layout, pair: tuple[int, int], *, dashed: bool) -> str:
    path = layout.paths[pair]
    x, start, end = path[0]
    drawn = [f"M{x:.1f} {start:.1f}V{end:.1f}"]
    for (last_x, _, above), (x_next, start_next, end_next) in pairwise(path):
        middle = (above + start_next) / 2
        curve = f"C{last_x:.1f} {middle:.1f} {x_next:.1f} {middle:.1f} {x_next:.1f} {start_next:.1f}"
        drawn.append(curve + f"V{end_next:.1f}")
    return f'<path class="need{" row" if dashed else ""}" d="{"".join(drawn)}" marker-start="url(#tip)"/>'
