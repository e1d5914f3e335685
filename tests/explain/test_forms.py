"""Explanations as text, Markdown, JSON, HTML and SVG."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import zodiacedge as ze
from zodiacedge.explain.budget import Budget
from zodiacedge.explain.forms.text import to_text
from zodiacedge.explain.proof import Explicit, FactPremise, Proof, Step
from zodiacedge.language.ast import Atom
from zodiacedge.language.parser import parse_fact

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.explain.proof import Support
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Fact

RULES = """
@prefix ex: <http://example.org/> .
r1: alarm(X) :- reading(X, V), V > 80, not muted(X, _) .
r2: hot(X) :- alarm(X), near(X, Y), alarm(Y) .
r3: peak(X, M) :- AGGREGATE(reading(X, V), near(X, Y)) ON X WITH MAX(V) AS M .
r4: big(X) :- peak(X, M), D := M * 2, D > 170, M + 1 > 3 .
ex:both(X) :- big(X), hot(X), alarm(X) .
reading(wt1, 60) . reading(wt1, 95) . reading(wt2, 99) .
near(wt1, wt2) . muted(wt9, ann) .
"""
TREE = """\
ex:both(wt1)  by rule 1 with X = wt1
├─ big(wt1)  by r4 with X = wt1, M = 95, D = 190
│  ├─ peak(wt1, 95)  by r3 with X = wt1, M = 95
│  │  └─ MAX(V) AS M = 95 over 2 bindings for X = wt1
│  │     ├─ V = 60, Y = wt2
│  │     │  ├─ reading(wt1, 60)  explicit
│  │     │  └─ near(wt1, wt2)  explicit
│  │     └─ V = 95, Y = wt2
│  │        ├─ reading(wt1, 95)  explicit
│  │        └─ near(wt1, wt2)  explicit
│  ├─ D := M * 2: 95 * 2 = 190
│  ├─ D > 170: 190 > 170
│  └─ M + 1 > 3: 95 + 1 > 3, which is 96 > 3
├─ hot(wt1)  by r2 with X = wt1, Y = wt2
│  ├─ alarm(wt1) [1]  by r1 with X = wt1, V = 95
│  │  ├─ reading(wt1, 95)  explicit
│  │  ├─ V > 80: 95 > 80
│  │  └─ no muted(wt1, _)
│  ├─ near(wt1, wt2)  explicit
│  └─ alarm(wt2)  by r1 with X = wt2, V = 99
│     ├─ reading(wt2, 99)  explicit
│     ├─ V > 80: 99 > 80
│     └─ no muted(wt2, _)
└─ alarm(wt1)  see [1]

rule 1: ex:both(X) :- big(X), hot(X), alarm(X) .
r4: big(X) :- peak(X, M), D := M * 2, D > 170, M + 1 > 3 .
r3: peak(X, M) :- AGGREGATE(reading(X, V), near(X, Y)) ON X WITH MAX(V) AS M .
r2: hot(X) :- alarm(X), near(X, Y), alarm(Y) .
r1: alarm(X) :- reading(X, V), V > 80, not muted(X, _) ."""


@pytest.fixture
def kb() -> KnowledgeBase:
    return knowledge(RULES)


def knowledge(rules: str) -> KnowledgeBase:
    kb = ze.open(engine="reference")
    with kb.change() as c:
        c.add_rules(rules)
    return kb


def test_text_shows_values_and_names_shared_parts_once(kb: KnowledgeBase) -> None:
    assert str(kb.explain("ex:both(wt1)")) == TREE


def test_text_folds_below_a_depth(kb: KnowledgeBase) -> None:
    assert kb.explain("hot(wt1)").to_text(1).splitlines()[:4] == [
        "hot(wt1)  by r2 with X = wt1, Y = wt2",
        "├─ alarm(wt1)  by r1 with X = wt1, V = 95  … 1 fact folded",
        "├─ near(wt1, wt2)  explicit",
        "└─ alarm(wt2)  by r1 with X = wt2, V = 99  … 1 fact folded",
    ]


def test_text_in_colours_is_the_same_text(kb: KnowledgeBase) -> None:
    coloured = to_text(kb.explain("alarm(wt1)"), None, colours=True)
    assert "\x1b[36mr1\x1b[0m" in coloured
    plain = coloured
    for sequence in ("\x1b[36m", "\x1b[2m", "\x1b[0m"):
        plain = plain.replace(sequence, "")
    assert plain == kb.explain("alarm(wt1)").to_text(None)


def test_a_variable_without_a_name_has_no_value() -> None:
    kb = knowledge("seen(X) :- reading(X, _) .  reading(wt1, 5) .")
    proof = kb.explain("seen(wt1)")
    assert str(proof).splitlines()[0] == "seen(wt1)  by rule 1 with X = wt1"
    assert '"values": {\n    "X": "<wt1>"\n   }' in proof.to_json()


def test_a_fact_of_a_pack_is_stated_by_the_pack() -> None:
    kb = knowledge(
        "f1: limit(80) :- 1 = 1 . r1: hot(X) :- reading(X, V), limit(L), V > L . reading(wt1, 93) ."
    )
    tree, rules = str(kb.explain("hot(wt1)")).split("\n\n")
    assert "├─ limit(80)  stated by f1" in tree.splitlines()
    assert "1 = 1" not in tree
    assert "f1: limit(80) ." in rules.splitlines()
    assert "limit(80)  stated by f1\n" in kb.explain("limit(80)").to_text(0)


def test_several_facts_are_several_trees(kb: KnowledgeBase) -> None:
    text = kb.explain("alarm(X)", limit=1).to_text()
    assert text.endswith("Further facts match; the first 1 are explained.")
    assert "\n\nalarm(wt2)  by r1" in kb.explain("alarm(X)").to_text()


def test_an_ended_budget_is_told(kb: KnowledgeBase) -> None:
    text = kb.explain("hot(wt1)", budget=Budget(instances=1)).to_text()
    assert "not explained: the budget ended" in text
    assert text.endswith("The budget ended: not every fact is explained.")


def test_markdown_is_a_nested_list(kb: KnowledgeBase) -> None:
    assert kb.explain("alarm(wt1)").to_markdown().splitlines() == [
        "- `alarm(wt1)` by `r1` with X = wt1, V = 95",
        "  - `reading(wt1, 95)` explicit",
        "  - `V > 80`: `95 > 80`",
        "  - no `muted(wt1, _)`",
        "",
        "```text",
        "r1: alarm(X) :- reading(X, V), V > 80, not muted(X, _) .",
        "```",
    ]


def test_signs_of_edits_begin_no_list_in_markdown(tmp_path: Path) -> None:
    with ze.open(tmp_path / "farm.zodiac", create=True) as kb:
        with kb.change() as c:
            c.add_rules("r1: p(X) :- q(X), not s(X) . q(a) . s(a) .")
        with kb.change() as c:
            c.remove_facts("s(a) .")
        lines = kb.why_changed("p(a)").to_markdown().splitlines()
    assert "    - \\- `s(a) .`" in lines


def test_markdown_quotes_what_a_value_holds() -> None:
    kb = knowledge('says(X, T) :- said(X, T) .  said(ann, "*`*<b>") .')
    text = kb.explain("says(ann, T)").to_markdown()
    assert '``says(ann, "*`*<b>")``' in text
    assert r"T = \"\*\`\*\<b\>\"".replace(r"\"", '"') in text


def test_json_has_facts_in_order_and_values_as_in_rows(kb: KnowledgeBase) -> None:
    document = kb.explain("ex:both(wt1)").to_dict()
    assert (document["format"], document["version"], document["kind"]) == (
        "zodiacedge-explanation",
        1,
        "proof",
    )
    facts = document["facts"]
    assert isinstance(facts, list)
    assert [fact["id"] for fact in facts] == list(range(len(facts)))
    assert document["asked"] == [len(facts) - 1]
    assert facts[-1]["predicate"] == "http://example.org/both"
    for fact in facts:
        for premise in fact.get("premises", ()):
            if premise["kind"] == "fact":
                assert premise["fact"] < fact["id"]
    (alarm,) = (f for f in facts if f["predicate"] == "alarm" and f["args"] == ["<wt2>"])
    assert alarm["values"] == {"X": "<wt2>", "V": 99}
    assert document["rules"][alarm["rule"]]["label"] == "r1"  # type: ignore[index]
    assert [premise["kind"] for premise in alarm["premises"]] == ["fact", "comparison", "absent"]
    assert alarm["premises"][1]["filled"] == "99 > 80"


def test_json_keeps_all_digits() -> None:
    kb = knowledge("p(X) :- q(X) .  q(1234567890123456789012345678) .")
    assert "1234567890123456789012345678" in kb.explain("p(X)").to_json()


class Nesting(HTMLParser):
    """Checks that elements are nested, and collects places and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.deepest = 0
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.ids += [value for value in [named.get("id")] if value]
        self.links += [value[1:] for value in [named.get("href")] if value]
        self.outside += [value for name, value in attrs if name == "src" and value]
        if tag not in {"meta", "link"}:
            self.open.append(tag)
        self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("form", ["to_html", "_repr_html_"])
def test_html_is_well_formed_and_its_links_lead_somewhere(kb: KnowledgeBase, form: str) -> None:
    reader = Nesting()
    reader.feed(getattr(kb.explain("ex:both(wt1)"), form)())
    assert not reader.open
    assert set(reader.links) <= set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids)
    assert not reader.outside


def test_html_escapes_values() -> None:
    kb = knowledge('says(X, T) :- said(X, T) .  said(ann, "</style><script>{{body}}") .')
    page = kb.explain("says(ann, T)").to_html()
    assert page.count("<script>") == 1
    assert "&lt;script&gt;{{body}}" in page


def test_a_high_proof_has_every_form() -> None:
    steps = 1500
    (rule,) = knowledge("next: at(Y) :- at(X), step(X, Y) .").rules
    facts = [parse_fact(f"at({n})") for n in range(steps)]
    supports: dict[Fact, Support] = {facts[0]: Explicit(facts[0])}
    for height in range(1, steps):
        edge = parse_fact(f"step({height - 1}, {height})")
        supports[edge] = Explicit(edge)
        at, step = rule.body
        assert isinstance(at, Atom)
        assert isinstance(step, Atom)
        premises = (FactPremise(at, facts[height - 1]), FactPremise(step, edge))
        supports[facts[height]] = Step(facts[height], "next", rule, {}, premises, height)
    proof = Proof((facts[-1],), supports)
    assert len(proof.to_text(None).splitlines()) == 2 * (steps - 1) + 3
    reader = Nesting()
    reader.feed(proof.to_html())
    assert set(reader.links) <= set(reader.ids)
    assert reader.deepest < 120
    assert json.loads(proof.to_json())["height"] == steps - 1
    ET.fromstring(proof.to_svg())  # noqa: S314 - our own text


def test_svg_has_a_box_per_fact(kb: KnowledgeBase) -> None:
    picture = ET.fromstring(kb.explain("ex:both(wt1)").to_svg())  # noqa: S314 - our own text
    titles = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"ex:both(wt1)", "reading(wt1, 95)", "by r1 with X = wt2, V = 99", "V > 80: 99 > 80"} <= titles


def test_a_proof_is_short_in_a_debugger(kb: KnowledgeBase) -> None:
    assert repr(kb.explain("near(wt1, X)")) == "<Proof near(wt1, wt2)  explicit>"


def test_styles_of_a_page_leave_the_text_of_its_drawings_alone(kb: KnowledgeBase) -> None:
    # The page of a preview holds the rule graph, whose classes have names such as "rules".
    drawn = set(re.findall(r'class="([\w ]+)"', kb.graph()._repr_svg_()))
    classes = {name for names in drawn for name in names.split()}
    page = kb.explain("alarm(wt1)").to_html()
    styled = set(re.findall(r"(?:^| )\.([\w-]+)(?=[^{}]*\{)", page[: page.index("</style>")], re.MULTILINE))
    assert classes
    assert classes.isdisjoint(styled)


@pytest.mark.parametrize("depth", ["x", 1.5, True, -1])
def test_a_depth_that_is_none_is_refused(kb: KnowledgeBase, depth: int) -> None:
    proof = kb.explain("alarm(wt1)")
    for form in (proof.to_text, proof.to_markdown, proof.to_html):
        with pytest.raises(ze.ZodiacError, match=f"U013: expected a depth, found {depth!r}"):
            form(depth)
