"""A module gives what the rule machine and the definition give, facts and segments alike.

Each shape runs on small random data: loops, cycles, several classes, lone nodes, explicit facts for what
the shape derives, facts that other nodes derive for it. Names, and the order of rules and bodies, are
drawn too.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import Seeded, examples
from strategies.dice import Drawn
from strategies.evaluation import evaluate
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.embedded.evaluate import chains, modules, seminaive
from zodiacedge.engine.embedded.evaluate.copies import CopyPass
from zodiacedge.engine.embedded.evaluate.modules import Module, Shape, recognise
from zodiacedge.engine.embedded.storage import table
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.errors import LimitReached
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.ast import fact
from zodiacedge.language.checks import Subject, check
from zodiacedge.language.parser import ground, parse_program
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import DrawFn

    from strategies import Dice, Evaluated
    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.embedded.storage.table import Table
    from zodiacedge.language.ast import Fact, Program

TESTS = Path(__file__).resolve().parents[1]

SYMMETRIC = "p(X, Y) :- p(Y, X) ."
TRANSITIVE = "p(X, Y) :- p(X, Z), p(Z, Y) ."
GUARDED = "p(X, Y) :- p(X, Z), p(Z, Y), X != Y ."
GUARDED_SHAPES = (Shape.TRANSITIVE_UNEQUAL, Shape.CLASSES_UNEQUAL)
CHAINS = {
    Shape.STEPS: "p(X, Y) :- p(X, Z), q(Z, Y) .",
    Shape.STEPS_BACK: "p(X, Y) :- q(X, Z), p(Z, Y) .",
    Shape.TRANSITIVE: TRANSITIVE,
    Shape.TRANSITIVE_UNEQUAL: GUARDED,
    Shape.CLASSES: f"{SYMMETRIC} {TRANSITIVE}",
    Shape.CLASSES_UNEQUAL: f"{SYMMETRIC} {GUARDED}",
}
COPIES = {
    "copy": "p(X, Y) :- q(X, Y) .",
    "inverse": "p(X, Y) :- q(Y, X) .",
    "copy of three columns": "t(X, Y, Z) :- u(X, Y, Z) .",
    "other order of three columns": "t(X, Y, Z) :- u(Z, X, Y) .",
    "class": "c(X) :- d(X) .",
    "first column": "c(X) :- q(X, Y) .",
    "second column": "c(Y) :- q(X, Y) .",
    "column of three": "c(Y) :- u(X, Y, _) .",
    "classes from a column": "rdf:type(X, Y) :- q(X, Y) .",
}
INVERSES = {
    "symmetric": SYMMETRIC,
    "inverse of each other": "p(X, Y) :- q(Y, X) . q(X, Y) :- p(Y, X) .",
    "the same": "p(X, Y) :- q(X, Y) . q(X, Y) :- p(X, Y) .",
    "symmetric by way of another": "p(X, Y) :- q(Y, X) . q(X, Y) :- p(X, Y) .",
    "three in a circle": "p(X, Y) :- q(Y, X) . q(X, Y) :- e(Y, X) . e(X, Y) :- p(X, Y) .",
}
COMPOSITIONS = {
    "same generation": "p(X, Y) :- q(Z, X), p(Z, W), q(W, Y) .",
    "three own atoms": "p(X, Y) :- p(X, Z), p(Z, W), p(W, Y) .",
    "two that meet": "p(X, Y) :- p(X, Z), p(Y, Z) .",
    "two that part": "p(X, Y) :- p(Z, X), p(Z, Y) .",
    "own atom first, backwards": "p(X, Y) :- p(Z, X), q(Z, Y) .",
    "relations outside composed": "p(X, Y) :- p(X, Z), q(Z, W), e(V, W), q(V, Y) .",
    "steps and inverse": "p(X, Y) :- p(X, Z), q(Z, Y) . p(X, Y) :- p(Y, X) .",
    "closure and its inverse": "p(X, Y) :- p(X, Z), p(Z, Y) . q(X, Y) :- p(Y, X) . p(X, Y) :- q(Y, X) .",
    "points-to": (
        "p(X, Y) :- e(X, Z), p(Z, Y) . q(X, Y) :- e(Z, W), p(Z, X), p(W, Y) . "
        "p(X, Y) :- e(X, Z), p(Z, W), q(W, Y) ."
    ),
}
PROGRAMS = {shape.value: (shape, text) for shape, text in CHAINS.items()} | {
    name: (shape, text)
    for shape, texts in (
        (Shape.COPY, COPIES),
        (Shape.INVERSES, INVERSES),
        (Shape.CHAINS, COMPOSITIONS),
    )
    for name, text in texts.items()
}
SPOILERS = (
    "p(X, X) :- p(X, Y) .",
    "p(X, Y) :- p(X, Y), r(Y) .",
    "p(X, Y) :- p(X, Z), p(Z, Y), r(Z) .",
    "p(X, Y) :- p(X, Z), p(Z, Y), X != Z .",
    "p(X, b) :- p(X, Z), p(Z, b) .",
    "p(X, Y) :- p(X, Z), p(Z, W), p(W, Y), p(X, W) .",
)
# What other nodes derive, for what the shapes derive and for what they read.
BESIDE = (
    "p(X, Y) :- e(X, Y) .",
    "p(X, Y) :- e(Y, X), r(X) .",
    "q(X, Y) :- e(Y, X) .",
    "q(X, Y) :- e(X, Z), e(Z, Y) .",
    "t(X, X, Y) :- e(X, Y) .",
    "u(X, Y, Z) :- e(X, Y), e(Y, Z) .",
    "c(X) :- r(X) .",
    "d(X) :- e(X, _) .",
    "d(a) :- r(X) .",
    "rdf:type(X, d) :- e(X, X) .",
)
# Every class has facts among those of all classes then.
TYPED = "rdf:type(X, Y) :- k(X, Y) ."
BEHIND = "s(X, Y) :- p(X, Y), not e(X, Y) . n(X) :- c(X), not e(X, X) ."
ARITIES = {"p": 2, "q": 2, "e": 2, "t": 3, "u": 3, "c": 1, "d": 1, "r": 1}
# No two of these are equal in value.
NODES = ("a", "b", "<c>", "_:d", '"e"', '"e"@en', "1", '"x"^^xsd:integer', '"NaN"^^xsd:double', "true")


# Programs


def facts(dice: Dice, nodes: tuple[str, ...]) -> str:
    """Few nodes and few edges, so that loops, cycles, several classes and lone nodes all occur."""
    some = dice.shuffled(nodes)[: dice.number(2, 7)]
    text = [
        f"{relation}({', '.join(dice.pick(some) for _ in range(arity))}) ."
        for relation, arity in ARITIES.items()
        for _ in range(dice.number(0, 2 * len(some) if arity == 2 else 3))
    ]
    classes = [f"k({dice.pick(some)}, {dice.pick('cd')}) ." for _ in range(dice.number(0, 3))]
    return " ".join(text + classes)


def renamed(text: str, dice: Dice) -> str:
    """Give predicates and variables other names."""
    predicates = [
        "p",
        "knows",
        "<http://example.org/p>",
        "été",
        "not1",
        "A",
        "q",
        "Step",
        "e",
        "x",
        "y",
        "zz",
    ]
    names = dict(zip(ARITIES, dice.shuffled(predicates), strict=False))
    variables = dict(zip("XYZ", dice.shuffled(["Y", "?x", "Z", "_v", "?p", "X"]), strict=False))
    text = re.sub(r"\b[XYZ]\b", lambda found: variables[found[0]], text)
    text = re.sub(r"\b[a-z](?=\()", lambda found: names.get(found[0], found[0]), text)
    # A class that stands for itself.
    return re.sub(r", ([cd])\)", lambda found: f", <{names[found[1]].strip('<>')}>)", text)


def shuffled(program: Program, dice: Dice) -> Program:
    """Put rules and bodies into another order."""
    rules = tuple(replace(rule, body=tuple(dice.shuffled(rule.body))) for rule in program.rules)
    return replace(program, rules=tuple(dice.shuffled(rules)))


def random_text(rules: str, dice: Dice, nodes: tuple[str, ...]) -> str:
    """Return a program with these rules, and maybe others beside them."""
    beside = [rule for rule in BESIDE if dice.chance(25)]
    typed = TYPED if dice.chance(20) else ""
    return " ".join((rules, *beside, typed, BEHIND, facts(dice, nodes)))


# Agreement


def run(program: Program, engine: Engine) -> Evaluated:
    return evaluate(program.rules, map(ground, program.facts), engine=engine)


def assert_same(program: Program, *engines: Engine) -> Evaluated:
    """Compare engines with the reference: the module's facts, everybody's segments, all counts."""
    expected = run(program, ReferenceEngine())
    for engine in engines or (EmbeddedEngine(), EmbeddedEngine(modules=False)):
        got = run(program, engine).result
        assert got.visible() == expected.result.visible()
        for hyper_node in expected.graph.order:
            rules = frozenset(hyper_node.rules)
            assert got.segment(rules) == expected.result.segment(rules)
        assert got.derived_counts() == expected.result.derived_counts()
        assert {k: d.count for k, d in got.dropped.items()} == {
            k: d.count for k, d in expected.result.dropped.items()
        }
    return expected


def agrees(seed: int, rules: str, nodes: tuple[str, ...] = NODES) -> None:
    dice = Seeded(seed)
    text = random_text(rules, dice, nodes)
    if dice.chance(70):
        text = renamed(text, dice)
    program = shuffled(parse_program(text), dice)
    try:
        assert_same(program)
    except AssertionError:
        pytest.fail(f"seed {seed}: {text}")


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Shape]:
    """The shapes that modules are evaluated for."""
    seen: list[Shape] = []

    def spy(module: Module, *rest: object) -> None:
        seen.append(module.shape)
        real(module, *rest)  # type: ignore[arg-type]

    def composed(module: Module, *rest: object) -> bool:
        seen.append(module.shape)
        return real_composed(module, *rest)  # type: ignore[arg-type]

    def copied(self: CopyPass, *rest: object) -> Table:
        seen.append(Shape.COPY)
        return real_copied(self, *rest)  # type: ignore[arg-type]

    real, real_composed, real_copied = modules.evaluate, modules.evaluate_composed, CopyPass.add
    monkeypatch.setattr(CopyPass, "add", copied)
    monkeypatch.setattr(seminaive, "evaluate_module", spy)
    monkeypatch.setattr(seminaive, "evaluate_composed", composed)
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_shape_is_recognised_whatever_its_names(name: str) -> None:
    shape, text = PROGRAMS[name]
    for seed in range(20):
        dice = Seeded(seed)
        found = recognise(shuffled(parse_program(renamed(text, dice)), dice).rules)
        assert found is not None
        assert found.shape is shape


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recognised_shape_is_evaluated_as_one(name: str, used: list[Shape]) -> None:
    shape, text = PROGRAMS[name]
    assert_same(parse_program(f"{text} {facts(Seeded(1), NODES)}"), EmbeddedEngine(modules=False))
    assert used == []
    assert_same(parse_program(f"{text} {facts(Seeded(1), NODES)}"), EmbeddedEngine())
    assert used == [shape]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_module_agrees_with_the_machine_and_the_definition(name: str) -> None:
    for seed in range(10):
        agrees(seed, PROGRAMS[name][1])


@pytest.mark.soak
@pytest.mark.parametrize("name", PROGRAMS)
def test_soak_modules(name: str) -> None:
    for seed in range(1_000, 1_000 + examples(1_000, one_in=50)):
        agrees(seed, PROGRAMS[name][1])


@pytest.mark.slow
def test_modules_run_without_a_compiler() -> None:
    script = (
        "from embedded.test_modules import PROGRAMS, agrees\n"
        "from zodiacedge.engine.embedded.kernels.jit import COMPILED\n"
        "assert not COMPILED\n"
        "for seed, (_, text) in enumerate(PROGRAMS.values()): agrees(seed, text)\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("rules", "columns"),
    [
        ("p(X, Y) :- q(X, Y) .", (0, 1)),
        ("p(X, Y) :- q(Y, X) .", (1, 0)),
        ("t(X, Y, Z) :- u(Z, X, Y) .", (1, 2, 0)),
        ("c(X) :- d(X) .", (0,)),
        ("c(Y) :- u(X, Y, Z) .", (1,)),
        ("rdf:type(X, Y) :- q(Y, X) .", (1, 0)),
    ],
)
def test_a_copy_knows_its_columns(rules: str, columns: tuple[int, ...]) -> None:
    found = recognise(parse_program(rules).rules)
    assert found is not None
    assert found.columns == columns


# What is almost a shape


@pytest.mark.parametrize("spoiler", SPOILERS)
def test_a_rule_that_spoils_the_shape_is_seen(spoiler: str) -> None:
    assert recognise(parse_program(TRANSITIVE + spoiler).rules) is None
    assert recognise(parse_program(spoiler).rules) is None


@pytest.mark.parametrize(
    "rules",
    [
        f"{SYMMETRIC} p(X, X) :- p(X, Y) .",
        "p(X, Y) :- p(X, Z), q(Z, Y), X != Y .",
        "p(X, Y) :- q(X, Z), q(Z, Y) .",
        "p(X, Y) :- p(X, Z), p(Y, Z), p(X, Y) .",
        "p(X, Y) :- p(X, Z), p(Z, Z), p(Z, Y) .",
        "p(X, Y) :- p(X, Z), p(W, Y) .",
        "p(X, Y) :- p(X, Z), p(Z, Y), p(Y, W) .",
        "p(X, Y) :- p(X, Z), p(Z, Y), X < Y .",
        "p(X, Y) :- p(X, Z), p(Z, Y), X != Y, X != Z .",
        "p(X, Y) :- p(X, Z), p(Z, Y), X != Y + 0 .",
        "p(X, Y) :- p(X, Z), p(Z, Y), not r(Z) .",
        "p(X, Y) :- p(X, X), p(X, Y) .",
        "p(X, Y) :- p(X, a), p(a, Y) .",
        "p(X, Y) :- p(X, Z), rdf:type(Z, Y) .",
        "rdf:type(X, Y) :- rdf:type(X, Z), rdf:type(Z, Y) .",
        "rdf:type(X, Y) :- rdf:type(X, Z), p(Z, Y) .",
        "p(X, Y) :- p(X, Z), q(Z, Y) . p(X, Y) :- p(Y, X), r(X) .",
        "p(X, Y) :- p(X, Z), p(Z, Y) . p(X, Y) :- q(Y, X) .",
        "p(X, X) :- q(X, Y) .",
        "p(X, Y) :- q(X, Y), r(X) .",
        "p(X, a) :- q(X, Y) .",
        "p(X, Y) :- q(X, Y, a) .",
        "p(X, Y) :- q(X, Y, Z) .",
        "p(X, Y) :- q(X, Y), X != Y .",
        "p(X, Y) :- not q(a, a), X := 1, Y := 2 .",
        "c(X) :- p(X, X) .",
        "c(X) :- rdf:type(X, Y) .",
        "flag() :- q(X, Y) .",
        "c(a) :- d(X) .",
    ],
)
def test_a_near_miss_is_no_module(rules: str) -> None:
    assert recognise(parse_program(rules).rules) is None


@pytest.mark.slow
@pytest.mark.parametrize("shape", CHAINS, ids=lambda shape: shape.value)
def test_a_spoiled_shape_agrees_with_the_definition(shape: Shape) -> None:
    for seed in range(6):
        agrees(seed, f"{CHAINS[shape]} {SPOILERS[seed % len(SPOILERS)]}")


def blurred(dice: Dice) -> str:
    """Return a shape with a few of its words replaced, repeated or left out, with data."""
    _, text = dice.pick(list(PROGRAMS.values()))
    for _ in range(dice.number(0, 2)):
        words = list(re.finditer(r"\b[XYZW]\b|\b[pq](?=\()|!=|, [pq]\(\w, \w\)", text))
        word = dice.pick(words)
        others = {"!": ("<", "="), ",": ("", word[0] * 2, ", r(Z)", ", Z != Y", ", p(Y, X)")}
        swaps = ("p", "q", "e") if word[0] in {"p", "q"} else ("X", "Y", "Z", "W", "a")
        text = text[: word.start()] + dice.pick(others.get(word[0][0], swaps)) + text[word.end() :]
    return random_text(text, dice, NODES)


@st.composite
def blurred_programs(draw: DrawFn) -> str:
    return blurred(Drawn(draw))


def blurred_agrees(text: str) -> None:
    program = parse_program(text)
    if not any(d.severity == "error" for d in check(Subject(program.rules, program.facts))):
        assert_same(program)


@pytest.mark.slow
@settings(max_examples=100)
@given(blurred_programs())
def test_what_is_almost_a_shape_agrees_with_the_definition(text: str) -> None:
    blurred_agrees(text)


@pytest.mark.soak
@settings(max_examples=examples(2000, one_in=25))
@given(blurred_programs())
def test_soak_what_is_almost_a_shape(text: str) -> None:
    blurred_agrees(text)


# Terms that are equal in value

EQUAL_NODES = ("a", "b", "1", "1.0", "1e0", '"1"^^xsd:float', "2", "2.0")


@pytest.mark.parametrize("shape", GUARDED_SHAPES, ids=lambda shape: shape.value)
def test_an_integer_is_not_unequal_to_the_decimal_of_its_value(shape: Shape) -> None:
    evaluated = assert_same(parse_program(f"{CHAINS[shape]} p(1, a) . p(a, 1.0) . p(1.0, b) ."))
    assert "p(1, 1.0)" not in evaluated.facts()


@pytest.mark.slow
@pytest.mark.parametrize("shape", GUARDED_SHAPES, ids=lambda shape: shape.value)
def test_guarded_shapes_over_terms_of_equal_value(shape: Shape) -> None:
    for seed in range(20):
        assert_same(parse_program(random_text(CHAINS[shape], Seeded(seed), EQUAL_NODES)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, (shape, _) in PROGRAMS.items() if shape not in GUARDED_SHAPES]
)
def test_shapes_without_a_guard_tell_terms_of_equal_value_apart(name: str) -> None:
    for seed in range(5):
        agrees(seed, PROGRAMS[name][1], EQUAL_NODES)


# Both sides of each threshold

Edges = set[tuple[int, int]]


def reached(base: Edges, step: Edges) -> Edges:
    """Return what steps lead to from the ends of base pairs, with the starts of these."""
    after: dict[int, set[int]] = defaultdict(set)
    for first, second in step:
        after[first].add(second)
    found: Edges = set()
    wave = base
    while wave:
        wave = {(x, y) for x, z in wave for y in after[z]} - found
        found |= wave
    return found


def unequal_segment(base: Edges) -> Edges:
    """Return what the guarded transitive rule derives: something lies between two different nodes."""
    closed = base | reached(base, base)
    return {
        (x, y) for x, y in closed if x != y and ((x, x) in base or (y, y) in base or _third(closed, x, y))
    }


def _third(closed: Edges, x: int, y: int) -> bool:
    return any(a == x and z not in {x, y} and (z, y) in closed for a, z in closed)


def classes_of(base: Edges) -> Edges:
    both = base | {(y, x) for x, y in base}
    return both | reached(both, both)


SEGMENTS: dict[Shape, Callable[[Edges, Edges], Edges]] = {
    Shape.STEPS: reached,
    Shape.STEPS_BACK: lambda p, q: flipped(reached(flipped(p), flipped(q))),
    Shape.TRANSITIVE: lambda p, _: reached(p, p),
    Shape.TRANSITIVE_UNEQUAL: lambda p, _: unequal_segment(p),
    Shape.CLASSES: lambda p, _: classes_of(p),
    Shape.CLASSES_UNEQUAL: lambda p, _: {(x, y) for x, y in classes_of(p) if x != y or (x, y) in p},
}


def flipped(edges: Edges) -> Edges:
    return {(y, x) for x, y in edges}


def graph(dice: random.Random, nodes: int, edges: int) -> Edges:
    return {(dice.randrange(nodes), dice.randrange(nodes)) for _ in range(edges)}


def as_facts(relation: str, edges: Edges) -> Iterable[Fact]:
    return (fact(relation, IRI(f"n{x}"), IRI(f"n{y}")) for x, y in edges)


def assert_segment(shape: Shape, p: Edges, q: Edges) -> None:
    evaluated = evaluate(
        parse_program(CHAINS[shape]).rules, (*as_facts("p", p), *as_facts("q", q)), engine=EmbeddedEngine()
    )
    expected = SEGMENTS[shape](p, q)
    assert evaluated.result.segment(frozenset(evaluated.rules)) == set(as_facts("p", expected))


def refused(*_: object) -> None:
    pytest.fail("the other way was meant to be taken")


# Around a word of bits, and with several words; few edges give many components, many give one.
SIZES = [(5, 8), (62, 60), (63, 120), (64, 70), (65, 200), (127, 130), (140, 250)]


@pytest.mark.parametrize("shape", [Shape.STEPS, Shape.STEPS_BACK, Shape.TRANSITIVE], ids=lambda s: s.value)
@pytest.mark.parametrize("limit", ["", "_MOST_SET_WORDS", "_MOST_SET_STEPS"])
def test_sets_of_bits_and_the_search_find_the_same(
    shape: Shape, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit:
        monkeypatch.setattr(modules, limit, 0)
        monkeypatch.setattr(modules, "reach_by_sets", refused)
    else:
        monkeypatch.setattr(modules, "reach", refused)
    dice = random.Random(7)
    for nodes, edges in SIZES:
        assert_segment(shape, graph(dice, nodes, edges), graph(dice, nodes, edges))


@pytest.mark.parametrize(
    "shape", [Shape.TRANSITIVE_UNEQUAL, Shape.CLASSES, Shape.CLASSES_UNEQUAL], ids=lambda s: s.value
)
def test_larger_graphs(shape: Shape) -> None:
    dice = random.Random(8)
    for nodes, edges in ((5, 8), (20, 25), (40, 30), (50, 45), (60, 100)):
        assert_segment(shape, graph(dice, nodes, edges), set())


def test_the_guarded_closure_of_every_graph_of_three_nodes() -> None:
    pairs = [(x, y) for x in range(3) for y in range(3)]
    for number in range(1, 1 << len(pairs)):
        edges = {pair for bit, pair in enumerate(pairs) if number >> bit & 1}
        assert_segment(Shape.TRANSITIVE_UNEQUAL, edges, set())


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_of_several_words(name: str) -> None:
    dice = random.Random(9)
    for nodes, edges in ((64, 20), (140, 60), (400, 90)):
        data = [as_facts(relation, graph(dice, nodes, edges)) for relation in ("p", "q", "e")]
        program = parse_program(COMPOSITIONS[name])
        given = [one for some in data for one in some]
        expected, got = (
            evaluate(program.rules, given, engine=EmbeddedEngine(modules=modules)).result
            for modules in (False, True)
        )
        assert got.visible() == expected.visible()
        assert got.derived_counts() == expected.derived_counts()


@pytest.mark.parametrize("limit", ["_MOST_BYTES", "_PRODUCT"])
def test_compositions_too_large_for_sets_are_left_to_the_machine(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit == "_PRODUCT":
        monkeypatch.setattr(chains, "_PRODUCT_AT_LEAST", 0)
        monkeypatch.setattr(chains, "_PRODUCT_PER_ROW", 0)
    else:
        monkeypatch.setattr(chains, limit, 0)
    monkeypatch.setattr(chains, "_Sets", refused)
    for seed in range(3):
        agrees(seed, COMPOSITIONS["relations outside composed"] + " p(a, b) . q(b, c) . e(c, c) . q(c, a) .")


def test_a_limit_of_facts_stops_compositions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_WORDS_AT_ONCE", 1)
    monkeypatch.setattr(chains._Sets, "write", refused)
    kb = KnowledgeBase(EmbeddedEngine(), Settings(limits=Limits(facts=100)))
    change = kb.change()
    change.add_rules(COMPOSITIONS["same generation"])
    change.add_facts([(n, (3 * n + 1) % 40) for n in range(40)], "q")
    change.add_facts([(n, (n + 1) % 40) for n in range(40)], "p")
    with pytest.raises(LimitReached):
        kb.apply(change.collected())


@pytest.mark.parametrize("terms_per_row", [0, 1 << 40], ids=["sorted", "flags"])
def test_compositions_are_the_same_sorted_or_flagged(
    terms_per_row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "_TERMS_PER_ROW", terms_per_row)
    for seed in range(3):
        agrees(seed, COMPOSITIONS["points-to"])


@pytest.mark.parametrize("terms_per_row", [0, 1 << 40], ids=["sorted", "flags"])
def test_a_column_is_the_same_sorted_or_flagged(terms_per_row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_TERMS_PER_ROW", terms_per_row)
    monkeypatch.setattr(table, "_LEAST_TERMS", 0)
    for seed in range(5):
        for name in ("class", "first column", "second column", "column of three"):
            agrees(seed, COPIES[name])


def test_a_column_of_few_rows_among_many_terms() -> None:
    many = " ".join(f"e(x{n}, y{n}) ." for n in range(500))
    assert_same(parse_program(f"c(Y) :- q(X, Y) . q(a, z1) . q(b, z1) . q(a, z2) . {many} q(z1, x7) ."))
