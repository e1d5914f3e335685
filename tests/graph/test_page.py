"""The HTML page of a graph: one file that needs nothing else, with the graph as data and never as code."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.graph.draw.page import to_html
from zodiacedge.graph.draw.show import to_dict
from zodiacedge.graph.draw.sketch import Details, FactCount
from zodiacedge.language.ast import Atom, Predicate, Rule, Variable
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import Literal

WEB = Path(__file__).parents[2] / "src" / "zodiacedge" / "graph" / "draw" / "web"
X, Y = Variable("X"), Variable("Y")
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "{{script}}",
    "]]>",
    "'\"`${alert(1)}",
    "\u2028",
    "<img src=x onerror=alert(1)>",
]


def graph_of(text: str) -> HyperGraph:
    return HyperGraph.build({rule.label: rule for rule in parse_program(text).rules})


class Page(HTMLParser):
    """The elements of a page, the text of its scripts, and all ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.ids: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, object]:
        found = json.loads(self.scripts[0])
        assert isinstance(found, dict)
        return found


RULES = "a: p(X, Y) :- e(X, Y) . b: q(X, Y) :- p(X, Y), not s(X, Y) . c: q(X, Y) :- q(Y, X) ."


def test_the_page_has_the_data_of_the_graph() -> None:
    graph = graph_of(RULES)
    counts = {Predicate("e", 2): FactCount(3, 0)}
    details = Details(sizes={1: 3}, counts=counts, highlight={2})
    data = Page(to_html(graph, details)).data
    assert data["graph"] == to_dict(graph, details)
    assert data["titles"] == {str(node.id): [p.name for p in graph.defines(node.id)] for node in graph.order}


def test_a_part_is_a_page_too() -> None:
    page = to_html(graph_of(RULES), Details(only={1}))
    assert "<title>1 rule in 1 hyper-node</title>" in page
    nodes = Page(page).data["titles"]
    assert nodes == {"1": ["p"]}


def test_the_page_needs_no_network() -> None:
    page = to_html(graph_of(RULES))
    found = Page(page)
    assert not {"link", "img", "iframe", "object", "base"} & set(found.tags)
    assert not [value for name, value in found.attributes if name in {"src", "href", "action", "srcset"}]
    assert not re.findall(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|import\s*\(", page)
    policy = [value for name, value in found.attributes if name == "content" and value and "src" in value]
    assert policy == ["default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup_or_code(name: str) -> None:
    rule = Rule(Atom(name, (X, Y)), (Atom("q", (X, Y)), Atom("r", (X, Literal(name)))), label="a")
    plain = Page(to_html(graph_of(RULES)))
    page = Page(to_html(HyperGraph.build({name: rule}), Details(prefixes={"x": name})))
    assert page.tags == plain.tags
    assert page.attributes == plain.attributes
    assert page.scripts[1] == plain.scripts[1]
    graph = page.data["graph"]
    assert isinstance(graph, dict)
    assert graph["nodes"][0]["rules"][0]["key"] == name


def test_an_empty_graph_is_a_page() -> None:
    assert Page(to_html(HyperGraph())).data["titles"] == {}


def test_the_script_finds_every_element_that_it_asks_for() -> None:
    ids = Page(to_html(HyperGraph())).ids
    assert len(ids) == len(set(ids))
    script = (WEB / "view.js").read_text("utf-8")
    asked = set(re.findall(r'byId\("(\w+)"\)', script))
    assert {"canvas", "panel", "query"} <= asked <= set(ids)


def test_the_script_never_makes_markup_of_text() -> None:
    for path in WEB.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", path.read_text()
        )


def test_every_key_that_the_help_names_has_an_action() -> None:
    helped = re.search(r"<h2>Keys</h2>(.*?)</template>", (WEB / "page.html").read_text("utf-8"), re.DOTALL)
    assert helped
    names = {"←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown", "Esc": "Escape", "−": "-"}
    keys = " ".join(re.findall(r"<dt>(.*?)</dt>", helped[1])).split()
    script = (WEB / "view.js").read_text("utf-8")
    for key in (re.escape(names.get(key, key)) for key in keys):
        assert re.search(rf'(?:^|[\s{{,])"?{key}"?[:,] |=== "{key}"', script, re.MULTILINE), key


def test_light_and_dark_define_the_same_colours() -> None:
    light, dark = re.findall(r":root[^{]*\{(.*?)\}", (WEB / "page.css").read_text("utf-8"), re.DOTALL)
    assert set(re.findall(r"--[\w-]+", light)) == set(re.findall(r"--[\w-]+", dark))
