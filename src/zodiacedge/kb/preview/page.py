"""The preview of a change as an HTML page: facts per predicate, explained samples, the rule graph."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.explain.forms.outlines import outline
from zodiacedge.explain.forms.page import explanation, page
from zodiacedge.graph.draw.sketch import Details
from zodiacedge.language.printer import abbreviate, format_atom, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.kb.preview.samples import PredicateChange, Preview, Sample

_STYLE = """
.zodiac table { border-collapse: collapse; margin: 6px 0; }
.zodiac th, .zodiac td { text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid var(--rule); }
.zodiac td.count { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.zodiac .wide { overflow-x: auto; }
.zodiac .sample { margin: 2px 0; overflow-wrap: anywhere; }
.zodiac .sample > div, .zodiac .graph { border: 1px solid var(--rule); border-radius: 6px; }
.zodiac .sample > div { margin: 4px 0 10px 20px; padding: 6px 10px; background: var(--card); }
.zodiac .graph { overflow-x: auto; background: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) .zodiac .graph { filter: invert(0.92) hue-rotate(180deg); }
}
:root[data-theme="dark"] .zodiac .graph { filter: invert(0.92) hue-rotate(180deg); }
.zodiac .graph svg { display: block; max-width: none; }
.zodiac ul.plain { list-style: none; margin: 4px 0; padding: 0; }
.zodiac ul.plain li { overflow-wrap: anywhere; }
"""


def preview_page(preview: Preview) -> str:
    """Return the page."""
    prefixes = {**DEFAULT_PREFIXES, **preview.report.prefixes}
    report = preview.report
    parts = [f'<p class="about">{escape(report.versions)}. A commit takes about {report.seconds:.3f} s.</p>']
    parts += _warnings(preview)
    parts += _rules(preview, prefixes)
    parts.append(f"<h2>Facts</h2>{_table(preview)}")
    for change in preview.predicates:
        parts += _samples(change, prefixes)
    parts.append(f"<h2>Hyper-nodes ({len(report.nodes)} touched)</h2>{_nodes(preview)}")
    parts.append('<p class="about">The rules after the change; the nodes that it touches are marked.</p>')
    parts.append(f'<div class="graph">{_graph(preview, prefixes)}</div>')
    return page("Preview of a change", "\n".join(parts), _STYLE)


def _warnings(preview: Preview) -> Iterator[str]:
    for warning in preview.report.warnings:
        text = abbreviate(f"{warning.severity} {warning.code}: {warning.message}", preview.report.prefixes)
        note = f" ({abbreviate(warning.note, preview.report.prefixes)})" if warning.note else ""
        yield f'<p class="note">{escape(text + note)}</p>'


def _rules(preview: Preview, prefixes: Mapping[str, str]) -> Iterator[str]:
    report = preview.report
    items = [("good", "+", rule) for rule in report.rules_added]
    items += [("bad", "-", rule) for rule in report.rules_removed]
    if items:
        lines = "".join(
            f'<li><span class="{tone}">{sign}</span> <code>{escape(format_rule(rule, prefixes))}</code></li>'
            for tone, sign, rule in items
        )
        yield f'<h2>Rules</h2><ul class="plain">{lines}</ul>'


def _table(preview: Preview) -> str:
    if not preview.predicates:
        return "<p>No fact comes or goes.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(change.name)}</code></td>"
        f'<td class="count good">{_signed("+", change.gained)}</td>'
        f'<td class="count bad">{_signed("-", change.lost)}</td></tr>'
        for change in preview.predicates
    )
    head = "<tr><th>predicate</th><th>gained</th><th>lost</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _signed(sign: str, count: int) -> str:
    return f"{sign}{count:,}" if count else ""


def _samples(change: PredicateChange, prefixes: Mapping[str, str]) -> Iterator[str]:
    if not change.samples:
        return
    shown = counted(len(change.samples), "sample")
    yield f"<h2><code>{escape(change.name)}</code>: {shown} of {change.gained + change.lost:,}</h2>"
    for number, sample in enumerate(change.samples, 1):
        yield _sample(sample, f"{_place(change.name)}{number}-", prefixes)


def _sample(sample: Sample, ids: str, prefixes: Mapping[str, str]) -> str:
    tone, sign = ("good", "+") if sample.gained else ("bad", "-")
    line = (
        f'<span class="{tone}">{sign}</span> <code>{escape(format_atom(sample.fact, prefixes))}</code> '
        f'<span class="quiet">{escape(sample.clipped_reason(prefixes))}</span>'
    )
    if sample.proof is None:
        return f'<div class="sample">{line}</div>'
    body = explanation(outline(sample.proof, 8), None, ids)
    return f'<details class="sample"><summary>{line}</summary><div>{body}</div></details>'


def _nodes(preview: Preview) -> str:
    rows = []
    for run in preview.report.nodes:
        moved = run.counted()
        gained, lost = (_signed("+", moved.gained), _signed("-", moved.lost)) if moved else ("", "")
        names = escape(abbreviate(", ".join(run.rules), preview.report.prefixes))
        rows.append(
            f"<tr><td><code>{names}</code></td><td>{escape(run.strategy)}</td>"
            f'<td class="count">{gained}</td><td class="count">{lost}</td>'
            f'<td class="count">{run.seconds:.3f} s</td></tr>'
        )
    head = "<tr><th>rules</th><th>strategy</th><th>gained</th><th>lost</th><th>time</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _graph(preview: Preview, prefixes: Mapping[str, str]) -> str:
    from zodiacedge.graph.draw.svg import to_svg  # noqa: PLC0415 - loads the layout library

    return to_svg(preview.graph, Details(prefixes=prefixes, highlight=preview.touched))


def _place(name: str) -> str:
    return re.sub(r"[^\w-]", "-", f"s-{name}-")
