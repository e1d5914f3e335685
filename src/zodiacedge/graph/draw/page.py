"""A graph as one HTML page to pan, zoom, search and fold, without network or external script.

The data is the JSON document of `show`, with short names for boxes. The page is put together from the files
in `web/`: `page.html`, `page.css`, `model.js` (what is shown, and where), `view.js` (drawing, mouse, keys).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from zodiacedge.errors import counted
from zodiacedge.graph.draw.show import to_dict
from zodiacedge.graph.draw.sketch import PLAIN, sketch
from zodiacedge.util.html import filled_page, web_file

if TYPE_CHECKING:
    from zodiacedge.graph.draw.sketch import Details
    from zodiacedge.graph.hyper_graph import HyperGraph

_PACKAGE = "zodiacedge.graph.draw"


def to_html(graph: HyperGraph, details: Details = PLAIN) -> str:
    """Return the page."""
    drawn = sketch(graph, details)
    titles = {node.id: node.short_defines for node in drawn.nodes}
    return filled_page(
        _PACKAGE,
        title=f"{counted(drawn.rules, 'rule')} in {counted(len(drawn.nodes), 'hyper-node')}",
        style=web_file(_PACKAGE, "page.css"),
        data=_embedded({"graph": to_dict(graph, details), "titles": titles}),
        script=f"{web_file(_PACKAGE, 'model.js')}\n{web_file(_PACKAGE, 'view.js')}",
    )


def _embedded(document: object) -> str:
    """Return JSON that no name in it can end: `</script>` and `<!--` have no `<`."""
    return json.dumps(document, ensure_ascii=False).replace("<", "\\u003c")
