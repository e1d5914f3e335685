"""Draws the farm: turbines in their rows, coloured by the air temperature that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STEP, _LEFT, _TOP, _RADIUS = 92, 70, 78, 26
_STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:12px;fill:#1e293b;text-anchor:middle}"
    ".title{font-size:15px;font-weight:600;text-anchor:start}.row{text-anchor:start;fill:#64748b}"
    ".value{font-weight:600}.broken{fill:none;stroke:#b91c1c;stroke-width:4}"
    ".front{fill:none;stroke:#1d4ed8;stroke-width:4}"
)
_COLDEST, _WARMEST = -15.0, 15.0
_BLUE, _WHITE, _RED = (96, 165, 250), (248, 250, 252), (252, 165, 120)


def farm_map(
    rows: Mapping[int, Sequence[int]],
    temperatures: Mapping[int, float],
    marked: Mapping[int, tuple[str, str]],
) -> str:
    """Return the picture.

    Args:
        rows: The turbines of each row.
        temperatures: The reading of each turbine, in degrees.
        marked: The highlighted turbines: a class of the style sheet, `broken` or `front`, and a caption.
    """
    longest, sensors = max(map(len, rows.values())), sum(map(len, rows.values()))
    width, height = _LEFT + longest * _STEP + 10, _TOP + len(rows) * _STEP
    body = [f'<text class="title" x="12" y="28">Air temperature at noon, as {sensors} sensors say</text>']
    for line, (row, numbers) in enumerate(rows.items()):
        y = _TOP + line * _STEP
        body.append(f'<text class="row" x="12" y="{y + 4}">row {row}</text>')
        for column, number in enumerate(numbers):
            x = _LEFT + _RADIUS + column * _STEP
            body += _turbine(x, y, number, temperatures[number], marked.get(number))
    extent = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {extent} role="img">',
            "<title>The farm at noon</title>",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _turbine(x: int, y: int, number: int, degrees: float, mark: tuple[str, str] | None) -> list[str]:
    shapes = [
        f'<circle cx="{x}" cy="{y}" r="{_RADIUS}" fill="{_colour(degrees)}" stroke="#cbd5e1"/>',
        f'<text class="value" x="{x}" y="{y + 4}">{degrees:.1f}°</text>',
    ]
    word = f"wt{number:02d}"
    if mark is not None:
        style, caption = mark
        shapes.append(f'<circle class="{style}" cx="{x}" cy="{y}" r="{_RADIUS + 3}"/>')
        word = f"{word}: {caption}"
    return [*shapes, f'<text x="{x}" y="{y + _RADIUS + 18}">{word}</text>']


def _colour(degrees: float) -> str:
    end = _RED if degrees > 0 else _BLUE
    saturation = min(abs(degrees) / (_WARMEST if degrees > 0 else -_COLDEST), 1.0)
    mixed = (round(a + (b - a) * saturation) for a, b in zip(_WHITE, end, strict=True))
    return f"rgb({','.join(map(str, mixed))})"
