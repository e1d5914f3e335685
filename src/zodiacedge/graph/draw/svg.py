"""A graph as an SVG picture: boxes for hyper-nodes, solid arrows, dashed ones for negative edges.

It needs no external program. Every box and arrow has a tooltip with its complete text. Positions come
from `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from zodiacedge.graph.draw.layout import Box, arrange
from zodiacedge.graph.draw.sketch import PLAIN, sketch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from zodiacedge.graph.draw.layout import Layout
    from zodiacedge.graph.draw.sketch import Details, SketchEdge, SketchNode
    from zodiacedge.graph.hyper_graph import HyperGraph

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_MOST_EDGES = 4_000
_MARGIN = 28.0
_PADDING = 12.0
_LINE = 17.0
_WIDEST = 320.0
_WRAP = 210.0
_MOST_LINES = 4

_STYLE = f"""
  text {{ font-family: {FONT}; fill: #1f2937; }}
  .name {{ font-size: 14px; font-weight: 700; }}
  .size {{ font-size: 11px; fill: #6b7280; text-anchor: end; }}
  .rules {{ font-size: 12px; }}
  .defines {{ font-size: 12px; fill: #1d4ed8; }}
  .legend {{ font-size: 12px; fill: #4b5563; }}
  .box {{ fill: #ffffff; stroke: #64748b; stroke-width: 1.2; }}
  .recursive {{ fill: #eef4ff; stroke: #3b6fd4; }}
  .marked {{ fill: #fff4d6; stroke: #d97706; stroke-width: 2.4; }}
  .edge {{ fill: none; stroke: #64748b; stroke-width: 1.4; }}
  .negative {{ stroke: #c2410c; stroke-dasharray: 6 4; }}
"""


@dataclass(frozen=True, slots=True)
class _Card:
    """A box with its wrapped text."""

    node: SketchNode
    rules: list[str]
    defines: list[str]
    width: float
    height: float


def to_svg(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return the picture."""
    drawn = sketch(graph, details, _MOST_EDGES)
    cards = {node.id: _card(node) for node in drawn.nodes}
    boxes = {card.node.id: Box(card.width, card.height, card.node.level) for card in cards.values()}
    layout = arrange(boxes, ((edge.source, edge.target) for edge in drawn.edges))
    both = {(edge.source, edge.target) for edge in drawn.edges if edge.negative} & {
        (edge.source, edge.target) for edge in drawn.edges if not edge.negative
    }
    body = [_arrow(edge, layout, cards, doubled=(edge.source, edge.target) in both) for edge in drawn.edges]
    body += [_box(card, *layout.corners[node]) for node, card in cards.items()]
    left_out = "" if drawn.complete else f"only {_MOST_EDGES:,} of the arrows are drawn"
    legend, legend_width = _legend(drawn.nodes, {edge.negative for edge in drawn.edges}, left_out)
    width = max(layout.width, legend_width) + 2 * _MARGIN
    shift = (width - layout.width) / 2
    top = _MARGIN + 34.0
    height = layout.height + top + _MARGIN
    summary = f"{drawn.rules} rules in {len(drawn.nodes)} hyper-nodes"
    extent = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {extent} role="img">',
            f"<title>{escape(summary)}</title>",
            f"<style>{_STYLE}</style>",
            "<defs>",
            _tip("tip", "#64748b"),
            _tip("negative-tip", "#c2410c"),
            "</defs>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            f'<g transform="translate({_MARGIN:.1f} {_MARGIN:.1f})">{legend}</g>',
            f'<g transform="translate({shift:.1f} {top:.1f})">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _card(node: SketchNode) -> _Card:
    rules = _wrapped(node.rules, 12.0)
    defines = _wrapped(node.short_defines, 12.0)
    heading = text_width(_heading(node), 14.0) * 1.08 + text_width(_size(node), 11.0) + 18.0
    longest = max([heading, *(text_width(line, 12.0) for line in (*rules, *defines)), 64.0])
    lines = 1 + len(rules) + len(defines)
    return _Card(node, rules, defines, longest + 2 * _PADDING, lines * _LINE + 2 * _PADDING + 2.0)


def _heading(node: SketchNode) -> str:
    return f"{node.name} ↻" if node.recursive else node.name


def _size(node: SketchNode) -> str:
    return "" if node.size is None else f"{node.size:,} fact{'' if node.size == 1 else 's'}"


def _wrapped(words: tuple[str, ...], size: float) -> list[str]:
    """Wrap a list of words to a few lines; words that do not fit are counted."""
    lines: list[str] = []
    for index, word in enumerate(words):
        short = clipped(word, size)
        if lines and text_width(f"{lines[-1]}, {short}", size) <= _WRAP:
            lines[-1] = f"{lines[-1]}, {short}"
        elif len(lines) < _MOST_LINES:
            lines.append(short)
        else:
            return [*lines, f"… and {len(words) - index} more"]
    return lines


def clipped(word: str, size: float, widest: float = _WIDEST) -> str:
    """Return a text that fits a width."""
    while text_width(word, size) > widest:
        word = word[: max(1, int(len(word) * 0.9) - 1)] + "…"
    return word


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of a text."""
    return size * sum(0.34 if c in "iljtfrI.,:;|!'()[] /" else 0.88 if c in "mwMW@%…" else 0.62 for c in text)


def _box(card: _Card, x: float, y: float) -> str:
    node = card.node
    kind = " marked" if node.highlighted else " recursive" if node.recursive else ""
    tooltip = "\n".join([node.name, *node.rules[:40], f"defines {', '.join(node.defines[:40])}"])
    parts = [
        f'<g id="{node.name}" transform="translate({x:.1f} {y:.1f})"><title>{escape(tooltip)}</title>',
        f'<rect class="box{kind}" width="{card.width:.1f}" height="{card.height:.1f}" rx="8"/>',
        f'<text class="name" x="{_PADDING}" y="{_PADDING + 13}">{_heading(node)}</text>',
    ]
    if node.size is not None:
        right = card.width - _PADDING
        parts.append(f'<text class="size" x="{right:.1f}" y="{_PADDING + 13}">{_size(node)}</text>')
    at = _PADDING + 15.0
    for kind_of_line, lines in (("rules", card.rules), ("defines", card.defines)):
        for line in lines:
            at += _LINE
            parts.append(f'<text class="{kind_of_line}" x="{_PADDING}" y="{at:.1f}">{escape(line)}</text>')
    return "".join([*parts, "</g>"])


def _arrow(edge: SketchEdge, layout: Layout, cards: Mapping[int, _Card], *, doubled: bool) -> str:
    path = layout.paths[edge.source, edge.target]
    # Two edges of different kinds between the same nodes share a lane.
    aside = (4.0 if edge.negative else -4.0) if doubled else 0.0
    x, start, end = path[0]
    drawn = [f"M{x + aside:.1f} {start:.1f}V{end:.1f}"]
    for (_, _, above), (x_next, start_next, end_next) in pairwise(path):
        middle = (above + start_next) / 2
        last_x = x + aside
        x = x_next
        curve = f"C{last_x:.1f} {middle:.1f} {x + aside:.1f} {middle:.1f} {x + aside:.1f} {start_next:.1f}"
        drawn.append(curve + f"V{end_next:.1f}")
    source, target = cards[edge.source].node.name, cards[edge.target].node.name
    how = "through not or an aggregate " if edge.negative else ""
    via = ", ".join(edge.via[:40])
    kind, tip = (" negative", "negative-tip") if edge.negative else ("", "tip")
    return (
        f'<path class="edge{kind}" d="{"".join(drawn)}" marker-end="url(#{tip})">'
        f"<title>{escape(f'{source} feeds {target} {how}({via})')}</title></path>"
    )


def _tip(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9.5" refY="5" markerWidth="9" markerHeight="9" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L10 5L0 9.2z" fill="{colour}"/></marker>'
    )


def _legend(nodes: tuple[SketchNode, ...], kinds: Collection[bool], left_out: str) -> tuple[str, float]:
    entries = []
    if False in kinds:
        entries.append(('<path class="edge" d="M0 0H30" marker-end="url(#tip)"/>', 38.0, "feeds"))
    if True in kinds:
        dashed = '<path class="edge negative" d="M0 0H30" marker-end="url(#negative-tip)"/>'
        entries.append((dashed, 38.0, "feeds through not or an aggregate"))
    for kind, text, shown in (
        ("recursive", "recursive", any(node.recursive and not node.highlighted for node in nodes)),
        ("marked", "highlighted", any(node.highlighted for node in nodes)),
    ):
        if shown:
            sample = f'<rect class="box {kind}" y="-7" width="22" height="14" rx="4"/>'
            entries.append((sample, 30.0, text))
    if left_out:
        entries.append(("", 0.0, left_out))
    parts, x = [], 0.0
    for sample, room, text in entries:
        words = f'<text class="legend" x="{room}" y="4">{escape(text)}</text>'
        parts.append(f'<g transform="translate({x:.1f} 6)">{sample}{words}</g>')
        x += room + text_width(text, 12.0) + 26.0
    return "".join(parts), max(0.0, x - 26.0)
