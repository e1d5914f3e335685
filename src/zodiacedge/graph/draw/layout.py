"""Layout of boxes and arrows: layers from top to bottom, connected groups side by side.

The boxes of a connected group are in layers, and an arrow that passes a layer has a lane of its own in
it, so no arrow crosses a box. The order within a layer and the horizontal positions come from grandalf's
Sugiyama layout; heights, distances and the paths of arrows are computed here. Groups that are too large
for it are put on a grid, level by level, with straight arrows. Drawing is left to `svg`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING

from zodiacedge.extras import need

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Point = tuple[float, float]
Pair = tuple[int, int]

_MOST_NODES = 150
_MOST_BENDS = 1200
_LANE = 16.0  # the width an arrow takes where it passes a layer
_GAP = 30.0  # between the boxes of a layer
_GROUP_GAP = 56.0
_ITERATIONS = 60  # after which positions are stable
_LEAD = 12.0  # an arrow's tip points straight down


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a box, and its level."""

    width: float
    height: float
    level: int


@dataclass(slots=True)
class Layout:
    """Upper left corners of boxes, paths of arrows as vertical segments, and the total size.

    A path is a list of (x, from y, to y): the arrow runs down at x and bends to the next segment.
    """

    corners: dict[int, Point] = field(default_factory=dict)
    paths: dict[Pair, list[tuple[float, float, float]]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0

    def paste(self, other: Layout, x: float, y: float) -> None:
        """Copy another layout into this one, moved by x and y."""
        for node, (left, top) in other.corners.items():
            self.corners[node] = (left + x, top + y)
        for pair, path in other.paths.items():
            self.paths[pair] = [(at + x, start + y, end + y) for at, start, end in path]
        self.width = max(self.width, x + other.width)
        self.height = max(self.height, y + other.height)


def arrange(boxes: Mapping[int, Box], pairs: Iterable[Pair]) -> Layout:
    """Return the layout of boxes and of the arrows between them; arrows go to higher levels only."""
    between = list(dict.fromkeys(pairs))
    boxes = _lowered(boxes, between)
    layouts = []
    for nodes, arrows in _groups(boxes, between):
        bends = sum(boxes[target].level - boxes[source].level - 1 for source, target in arrows)
        small = len(nodes) <= _MOST_NODES and bends <= _MOST_BENDS
        layouts.append(_layered(boxes, nodes, arrows) if small else _grid(boxes, nodes, arrows))
    return _packed(layouts)


def _lowered(boxes: Mapping[int, Box], pairs: Sequence[Pair]) -> Mapping[int, Box]:
    """Move boxes with more outgoing than incoming arrows down to their targets: shorter arrows."""
    targets: dict[int, list[int]] = {node: [] for node in boxes}
    sources = dict.fromkeys(boxes, 0)
    for source, target in pairs:
        targets[source].append(target)
        sources[target] += 1
    levels = {node: box.level for node, box in boxes.items()}
    for node in sorted(boxes, key=lambda node: -boxes[node].level):
        if len(targets[node]) > sources[node]:
            levels[node] = min(levels[target] for target in targets[node]) - 1
    return {node: Box(box.width, box.height, levels[node]) for node, box in boxes.items()}


def _groups(boxes: Mapping[int, Box], pairs: Sequence[Pair]) -> list[tuple[list[int], list[Pair]]]:
    """Return the connected groups, each with its arrows."""
    parent = {node: node for node in boxes}

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target in pairs:
        parent[find(source)] = find(target)
    groups: dict[int, tuple[list[int], list[Pair]]] = {}
    for node in boxes:
        groups.setdefault(find(node), ([], []))[0].append(node)
    for pair in pairs:
        groups[find(pair[0])][1].append(pair)
    return list(groups.values())


def _packed(groups: list[Layout]) -> Layout:
    """Put groups in rows, tall ones first; the result is somewhat wider than high."""
    page = Layout()
    area = sum((group.width + _GROUP_GAP) * (group.height + _GROUP_GAP) for group in groups)
    limit = max([sqrt(area * 1.8), *(group.width for group in groups)])
    x = y = row = 0.0
    for group in sorted(groups, key=lambda group: -group.height):
        if x > 0 and x + group.width > limit:
            x, y, row = 0.0, y + row + _GROUP_GAP, 0.0
        page.paste(group, x, y)
        x += group.width + _GROUP_GAP
        row = max(row, group.height)
    return page


def _grid(boxes: Mapping[int, Box], nodes: Sequence[int], pairs: Sequence[Pair]) -> Layout:
    """Put boxes level by level in rows of equal cells; arrows go straight."""
    cell = max(boxes[node].width for node in nodes) + _GAP
    columns = max(1, ceil(sqrt(len(nodes) * 0.8)))
    levels: dict[int, list[int]] = {}
    for node in sorted(nodes, key=lambda node: boxes[node].level):
        levels.setdefault(boxes[node].level, []).append(node)
    if len(levels) > columns:
        # A long chain would be a single column of boxes: let levels share rows.
        levels = {0: [node for members in levels.values() for node in members]}
    layout = Layout()
    y = 0.0
    for members in levels.values():
        for start in range(0, len(members), columns):
            row = members[start : start + columns]
            for column, node in enumerate(row):
                layout.corners[node] = (column * cell, y)
                layout.width = max(layout.width, column * cell + boxes[node].width)
            y += max(boxes[node].height for node in row) + _GAP
        y += _GAP
    for source, target in pairs:
        (left, top), (other_left, other_top) = layout.corners[source], layout.corners[target]
        bottom = top + boxes[source].height
        start_x, end_x = left + boxes[source].width / 2, other_left + boxes[target].width / 2
        layout.paths[source, target] = [(start_x, bottom, bottom), (end_x, other_top, other_top)]
    layout.height = y - 2 * _GAP
    return layout


# A slot of a layer: a box by its id, or the lane of a passing arrow.
Slot = int | tuple[int, int, int]


def _layered(boxes: Mapping[int, Box], nodes: Sequence[int], pairs: Sequence[Pair]) -> Layout:
    """Put boxes in layers, and every arrow in a lane through the layers that it passes."""
    centres, lanes = _sugiyama(boxes, nodes, pairs)
    layers: dict[int, list[Slot]] = {}
    for slot in centres:
        layers.setdefault(boxes[slot].level if isinstance(slot, int) else slot[2], []).append(slot)
    numbers = sorted(layers)
    _relax(boxes, [layers[number] for number in numbers], centres, lanes)
    left = min(centres[slot] - _width(boxes, slot) / 2 for slot in centres)
    layout = Layout(width=max(centres[slot] + _width(boxes, slot) / 2 for slot in centres) - left)
    bands: dict[int, tuple[float, float]] = {}
    y = 0.0
    for number in numbers:
        high = max((boxes[slot].height for slot in layers[number] if isinstance(slot, int)), default=0.0)
        bands[number] = (y, y + high)
        crossing = sum(boxes[s].level <= number < boxes[t].level for s, t in pairs)
        y += high + 44.0 + min(60.0, 3.0 * crossing)
    layout.height = bands[numbers[-1]][1]
    for node in nodes:
        top, bottom = bands[boxes[node].level]
        x = centres[node] - left - boxes[node].width / 2
        layout.corners[node] = (x, (top + bottom - boxes[node].height) / 2)
    ends = _ports(boxes, pairs, centres, lanes)
    for pair in pairs:
        source, target = pair
        leave, arrive = ends[pair]
        lower = layout.corners[source][1] + boxes[source].height
        upper = layout.corners[target][1]
        path = [(leave - left, lower, bands[boxes[source].level][1] + _LEAD / 2)]
        path += [(centres[lane] - left, *bands[lane[2]]) for lane in lanes[pair]]
        layout.paths[pair] = [*path, (arrive - left, bands[boxes[target].level][0] - _LEAD, upper)]
    return layout


def _sugiyama(
    boxes: Mapping[int, Box], nodes: Sequence[int], pairs: Sequence[Pair]
) -> tuple[dict[Slot, float], dict[Pair, list[tuple[int, int, int]]]]:
    """Return horizontal centres of boxes and lanes, and the lanes of each arrow from top to bottom.

    Lanes are passed to the library as vertices, so that it keeps our layers.
    """
    lanes = {
        (source, target): [
            (source, target, level) for level in range(boxes[source].level + 1, boxes[target].level)
        ]
        for source, target in pairs
    }
    slots: list[Slot] = [*nodes, *(lane for passed in lanes.values() for lane in passed)]
    if len(slots) == 1:
        return {slots[0]: 0.0}, lanes
    # A drawing is the only thing that needs the library.
    need("drawing", "a drawing of the rule graph")
    from grandalf.graphs import Edge, Graph, Vertex  # noqa: PLC0415 - loads only when used
    from grandalf.layouts import Layer, SugiyamaLayout, VertexViewer  # noqa: PLC0415 - as above

    vertices = {slot: Vertex(slot) for slot in slots}
    for slot, vertex in vertices.items():
        vertex.view = VertexViewer(_width(boxes, slot), 10)
    edges = []
    for (source, target), passed in lanes.items():
        steps: list[Slot] = [source, *passed, target]
        edges += [Edge(vertices[a], vertices[b]) for a, b in pairwise(steps)]
    (core,) = Graph(list(vertices.values()), edges).C
    sugiyama = SugiyamaLayout(core)
    sugiyama.xspace = _GAP
    layers: dict[int, list[Slot]] = {}
    for slot in slots:
        layers.setdefault(boxes[slot].level if isinstance(slot, int) else slot[2], []).append(slot)
    for rank, level in enumerate(sorted(layers)):
        sugiyama.layers.append(Layer(vertices[slot] for slot in layers[level]))
        for slot in layers[level]:
            sugiyama.grx[vertices[slot]].rank = rank
    # The levels are fixed: the library would put every box without incoming arrows on top.
    sugiyama.rank_all = lambda _roots, _optimize: None
    sugiyama.init_all(roots=[], inverted_edges=[])
    sugiyama.draw(6)
    return {slot: vertex.view.xy[0] for slot, vertex in vertices.items()}, lanes


def _width(boxes: Mapping[int, Box], slot: Slot) -> float:
    return boxes[slot].width if isinstance(slot, int) else _LANE


def _relax(
    boxes: Mapping[int, Box],
    layers: list[list[Slot]],
    centres: dict[Slot, float],
    lanes: Mapping[Pair, list[tuple[int, int, int]]],
) -> None:
    """Move slots towards their neighbours: the library leaves wide empty areas."""
    neighbours: dict[Slot, list[Slot]] = {slot: [] for slot in centres}
    for (source, target), passed in lanes.items():
        steps: list[Slot] = [source, *passed, target]
        for above, below in pairwise(steps):
            neighbours[above].append(below)
            neighbours[below].append(above)
    for layer in layers:
        layer.sort(key=lambda slot: centres[slot])
        _spread(boxes, layer, centres)
    for iteration in range(_ITERATIONS):
        for layer in layers if iteration % 2 else reversed(layers):
            for slot in layer:
                near = [centres[other] for other in neighbours[slot]]
                if near:
                    # A box with one arrow ends directly below or above its neighbour.
                    pull = 1.0 if len(near) == 1 and iteration == _ITERATIONS - 1 else 0.5
                    centres[slot] += pull * (sum(near) / len(near) - centres[slot])
            _spread(boxes, layer, centres)


def _spread(boxes: Mapping[int, Box], layer: list[Slot], centres: dict[Slot, float]) -> None:
    """Separate overlapping slots of a layer: the mean of a pass from each side."""
    rightmost = dict(centres)
    for before, slot in pairwise(layer):
        distance = (_width(boxes, before) + _width(boxes, slot)) / 2 + _GAP
        centres[slot] = max(centres[slot], centres[before] + distance)
    for after, slot in pairwise(reversed(layer)):
        distance = (_width(boxes, slot) + _width(boxes, after)) / 2 + _GAP
        rightmost[slot] = min(rightmost[slot], rightmost[after] - distance)
    # Both passes keep the distances, and so does their mean.
    for slot in layer:
        centres[slot] = (centres[slot] + rightmost[slot]) / 2


def _ports(
    boxes: Mapping[int, Box],
    pairs: Sequence[Pair],
    centres: Mapping[Slot, float],
    lanes: Mapping[Pair, list[tuple[int, int, int]]],
) -> dict[Pair, Point]:
    """Return the x positions where each arrow leaves and enters boxes: side by side, without crossings."""
    leaving: dict[int, list[tuple[float, Pair]]] = {}
    arriving: dict[int, list[tuple[float, Pair]]] = {}
    for pair in pairs:
        first: Slot = lanes[pair][0] if lanes[pair] else pair[1]
        last: Slot = lanes[pair][-1] if lanes[pair] else pair[0]
        leaving.setdefault(pair[0], []).append((centres[first], pair))
        arriving.setdefault(pair[1], []).append((centres[last], pair))
    starts = _side_by_side(boxes, leaving, centres)
    stops = _side_by_side(boxes, arriving, centres)
    return {pair: (starts[pair], stops[pair]) for pair in pairs}


def _side_by_side(
    boxes: Mapping[int, Box], ends: Mapping[int, list[tuple[float, Pair]]], centres: Mapping[Slot, float]
) -> dict[Pair, float]:
    positions = {}
    for node, towards in ends.items():
        step = min(22.0, (boxes[node].width - 24.0) / max(1, len(towards) - 1))
        first = centres[node] - step * (len(towards) - 1) / 2
        for index, (_, pair) in enumerate(sorted(towards)):
            positions[pair] = first + index * step
    return positions
