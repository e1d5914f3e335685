"""A graph as one HTML page to pan, zoom, search and fold, without network or external script.

The data is the JSON document of `show`, with short names for boxes. The page is put together from the files
in `web/`: `page.html`, `page.css`, `model.js` (what is shown, and where), `view.js` (drawing, mouse, keys).
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.graph.draw.show import to_dict
from zodiacedge.graph.draw.sketch import PLAIN, sketch

if TYPE_CHECKING:
    from zodiacedge.graph.draw.sketch import Details
    from zodiacedge.graph.hyper_graph import HyperGraph

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def to_html(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return the page."""
    drawn = sketch(graph, details)
    titles = {node.id: node.short_defines for node in drawn.nodes}
    parts = {
        "title": f"{counted(drawn.rules, 'rule')} in {counted(len(drawn.nodes), 'hyper-node')}",
        "style": _file("page.css"),
        "data": _embedded({"graph": to_dict(graph, details), "titles": titles}),
        "script": f"{_file('model.js')}\n{_file('view.js')}",
    }
    # In one pass: a name may look like a place of the template.
    return _PLACE.sub(lambda place: parts[place[1]], _file("page.html"))


def _embedded(document: object) -> str:
    """Return JSON that no name in it can end: `</script>` and `<!--` have no `<`."""
    return json.dumps(document, ensure_ascii=False).replace("<", "\\u003c")


def _file(name: str) -> str:
    return (files("zodiacedge.graph.draw") / "web" / name).read_text(encoding="utf-8")
