"""Prepared queries: whatever the engine, a call answers as the query with the values written into it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

import zodiacedge as ze
from strategies import Seeded, random_session
from strategies.queries import OpenQuery, random_open_query
from strategies.scale import examples
from strategies.schema import term
from zodiacedge.engine.api import Settings
from zodiacedge.errors import CheckProblem, LoadProblem, SyntaxProblem, UsageProblem
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.printer import format_term
from zodiacedge.terms import BlankNode, integer, string

if TYPE_CHECKING:
    from strategies import Dice, RandomChange
    from zodiacedge.engine.api import Engine
    from zodiacedge.language.ast import Variable
    from zodiacedge.terms import Term

A, B, K, NOBODY = map(ze.iri, ("a", "b", "k", "nobody"))


@pytest.fixture
def kb(engine: Engine) -> KnowledgeBase:
    return KnowledgeBase(engine, Settings())


@pytest.fixture
def farm(kb: KnowledgeBase) -> KnowledgeBase:
    change(
        kb,
        """near(a, b) . near(b, c) . near(c, c) . near(a, a) . key(k, a) . turbine(a) . turbine(b) . mast(c) .
        reads(a, 1) . reads(a, 5) . reads(b, 5) . reads(b, 0) . reads(c, 2.5) . reads(c, "high") .
        far(X, Y) :- near(X, Y) .  far(X, Z) :- far(X, Y), near(Y, Z) .""",
    )
    return kb


def change(kb: KnowledgeBase, text: str) -> None:
    with kb.change() as c:
        c.add_rules(text)


def drops(answers: ze.Answers) -> int:
    return answers.dropped.count if answers.dropped else 0


# As if the values stood in the text


@pytest.mark.parametrize(
    ("query", "written", "calls"),
    [
        ("ans(Y) :- near(X, Y)", "ans(Y) :- near({X}, Y)", [{"X": "a"}, {"X": "b"}, {"X": "nobody"}]),
        ("ans(X) :- near(X, Y)", "ans(X) :- near(X, {Y})", [{"Y": "c"}, {"Y": "a"}]),
        ("ans() :- near(X, Y)", "ans() :- near({X}, {Y})", [{"X": "a", "Y": "b"}, {"X": "b", "Y": "a"}]),
        ("ans(X) :- near(X, X)", "ans({X}) :- near({X}, {X})", [{"X": "a"}, {"X": "b"}, {"X": "c"}]),
        ("ans(Y, Z) :- far(X, Y), far(Y, Z)", "ans(Y, Z) :- far({X}, Y), far(Y, Z)", [{"X": "b"}]),
        # classes
        ("ans(X) :- turbine(X)", "ans({X}) :- turbine({X})", [{"X": "a"}, {"X": "c"}]),
        ("ans(X) :- rdf:type(X, C)", "ans(X) :- rdf:type(X, {C})", [{"C": "turbine"}, {"C": "a"}]),
        ("ans(C) :- rdf:type(X, C)", "ans(C) :- rdf:type({X}, C)", [{"X": "a"}, {"X": "c"}]),
        # negation alone
        (
            "ans(Y) :- mast(Y), not near(X, Y)",
            "ans(Y) :- mast(Y), not near({X}, Y)",
            [{"X": "a"}, {"X": "b"}],
        ),
        (
            "ans(Y) :- mast(Y), not turbine(X)",
            "ans(Y) :- mast(Y), not turbine({X})",
            [{"X": "a"}, {"X": "c"}],
        ),
        ("ans(Y) :- mast(Y), not rdf:type(_, C)", "ans(Y) :- mast(Y), not rdf:type(_, {C})", [{"C": "mast"}]),
        (
            "ans(Y) :- turbine(Y), not near(X, Y), not near(Y, X)",
            "ans(Y) :- turbine(Y), not near({X}, Y), not near(Y, {X})",
            [{"X": "c"}, {"X": "a"}, {"X": "b"}],
        ),
        # comparisons and bindings alone
        ("ans(X, N) :- reads(X, N), N > L", "ans(X, N) :- reads(X, N), N > {L}", [{"L": "1"}, {"L": '"g"'}]),
        ("ans(N) :- reads(a, N), N = L", "ans(N) :- reads(a, N), N = {L}", [{"L": "5.0"}, {"L": '"x"'}]),
        ("ans(N) :- reads(a, N), L = N + 1", "ans(N) :- reads(a, N), {L} = N + 1", [{"L": "6"}, {"L": "2"}]),
        ("ans(M) :- reads(a, N), M = L", "ans(M) :- reads(a, N), M = {L}", [{"L": "6"}, {"L": "k"}]),
        ("ans(M) :- reads(X, N), M = N / L", "ans(M) :- reads(X, N), M = N / {L}", [{"L": "2"}, {"L": "0"}]),
        ("ans(M) :- M := L + 1", "ans(M) :- M := {L} + 1", [{"L": "2"}, {"L": "a"}]),
        ("ans() :- L > 3", "ans() :- {L} > 3", [{"L": "2"}, {"L": "4"}, {"L": "a"}]),
        ("ans(L, X) :- turbine(X)", "ans({L}, X) :- turbine(X)", [{"L": "2"}, {"L": "k"}]),
        # an atom of one row beside them
        (
            "ans(X, N) :- key(K, X), reads(X, N)",
            "ans(X, {N}) :- key({K}, X), reads(X, {N})",
            [{"K": "k", "N": "5"}, {"K": "k", "N": "7"}, {"K": "k", "N": "1"}, {"K": "a", "N": "1"}],
        ),
        ("ans(Y) :- key(k, a), near(X, Y)", "ans(Y) :- key(k, a), near({X}, Y)", [{"X": "b"}, {"X": "a"}]),
        # beside an aggregate
        (
            "ans(N, X) :- turbine(X), AGGREGATE(reads(_, V)) WITH COUNT(V) AS N",
            "ans(N, {X}) :- turbine({X}), AGGREGATE(reads(_, V)) WITH COUNT(V) AS N",
            [{"X": "a"}, {"X": "c"}, {"X": "b"}],
        ),
        (
            "ans(X, N) :- N + L < 4, AGGREGATE(reads(X, V)) ON X WITH COUNT(V) AS N",
            "ans(X, N) :- N + {L} < 4, AGGREGATE(reads(X, V)) ON X WITH COUNT(V) AS N",
            [{"L": "1"}, {"L": "2"}, {"L": "a"}],
        ),
    ],
)
def test_a_call_answers_as_the_text_with_the_values(
    farm: KnowledgeBase, query: str, written: str, calls: list[dict[str, str]]
) -> None:
    compare(farm, query, written, calls)


@pytest.mark.parametrize(
    ("query", "written", "calls"),
    [
        ("ans(Y) :- key(k, X), near(X, Y)", "ans(Y) :- key(k, {X}), near({X}, Y)", [{"X": "a"}, {"X": "b"}]),
        ("ans(X) :- key(k, X), L > 0", "ans({X}) :- key(k, {X}), {L} > 0", [{"X": "a", "L": "1"}]),
        # grouped by it: only these readings
        (
            "ans(X, N) :- AGGREGATE(reads(X, V)) ON X WITH COUNT(V) AS N",
            "ans({X}, N) :- AGGREGATE(reads({X}, V)) WITH COUNT(V) AS N",
            [{"X": "a"}, {"X": "b"}, {"X": "nobody"}],
        ),
    ],
)
def test_a_plan_may_meet_the_values_late(
    farm: KnowledgeBase, query: str, written: str, calls: list[dict[str, str]]
) -> None:
    compare(farm, query, written, calls)


def compare(farm: KnowledgeBase, query: str, written: str, calls: list[dict[str, str]]) -> None:
    prepared = farm.prepare(query, *calls[0])
    for values in [*calls, *reversed(calls)]:
        got = prepared(**{name: term(value) for name, value in values.items()})
        expected = farm.query(written.format(**values))
        assert (got.rows, drops(got)) == (expected.rows, drops(expected)), values


def test_the_result_of_an_aggregate_may_be_given(farm: KnowledgeBase) -> None:
    with_count = farm.prepare("ans(X) :- AGGREGATE(near(X, Y)) ON X WITH COUNT(Y) AS N", "N")
    assert list(with_count(N=2)) == [(A,)]
    assert len(with_count(N=1)) == 2
    assert not with_count(N=2.0)


class Conversation:
    """Random queries on a random knowledge base that changes, each call compared with the text."""

    def __init__(self, engine: Engine, dice: Dice) -> None:
        session = random_session(dice, most_changes=2)
        self.dice = dice
        self.kb = KnowledgeBase(engine, Settings())
        self.kb.apply(Change(session.program.rules, (), session.program.facts))
        opened = [random_open_query(dice, session.program.schema) for _ in range(3)]
        self.prepared = [(one, self.kb.prepare(one.text, *one.names)) for one in opened]
        self.changes = session.changes

    def play(self) -> None:
        self.ask()
        for made in self.changes:
            self.kb.apply(_change(made))
            self.ask()

    def ask(self) -> None:
        terms = sorted({t for f in self.kb.facts() for t in f.args}, key=repr)
        for _ in range(3):
            for query, call in self.prepared:
                self.compare(query, call, self.values(query, terms))

    def values(self, query: OpenQuery, terms: list[Term]) -> dict[Variable, Term]:
        dice = self.dice
        strange = tuple(map(term, ("nobody", '"x"', "1.5", "0", "2.5e0", "_:n1")))
        found = {v: dice.pick(strange if dice.chance(20) else [*terms, NOBODY]) for v in query.parameters}
        if not dice.chance(30):
            found.update(query.usual)
            asked, text = query.likely()
            rows = self.kb.query(text).rows
            found.update(zip(asked, dice.pick(rows), strict=True) if rows else ())
        for v in query.classes:
            if not isinstance(found[v], ze.IRI):
                found[v] = NOBODY
        return found

    def compare(self, query: OpenQuery, call: ze.Prepared, values: dict[Variable, Term]) -> None:
        got = call(**{v.name: value for v, value in values.items()})
        expected = self.kb.query(query.closed(values))
        places = [(query.query.columns.index(v), values[v]) for v in query.aggregated]
        rows = tuple(row for row in expected.rows if all(row[at] == value for at, value in places))
        told = f"{query.text} with {[(v.name, format_term(t)) for v, t in values.items()]}"
        assert got.rows == rows, told
        if not places:
            assert drops(got) == drops(expected), told


def _change(made: RandomChange) -> Change:
    return Change(made.add_rules, made.remove_rules, made.add_facts, made.remove_facts)


def test_random_queries(engine: Engine) -> None:
    for seed in range(25):
        Conversation(engine, Seeded(seed)).play()


@pytest.mark.soak
def test_many_random_queries(engine: Engine) -> None:
    for seed in range(1_000_000, 1_000_000 + examples(1_000, one_in=50)):
        Conversation(engine, Seeded(seed)).play()


# From call to call


def test_calls_leave_nothing_behind(farm: KnowledgeBase) -> None:
    near, reads = farm.prepare("?- near(X, Y)", "X"), farm.prepare("?- reads(X, N), M := 10 / N", "X")
    first = near(X=A)
    assert [len(near(X=x)) for x in (A, NOBODY, B, A)] == [2, 0, 1, 2]
    assert [drops(reads(X=x)) for x in (B, A, B, NOBODY)] == [1, 0, 1, 0]
    assert reads(X=A).dropped is None
    assert list(first) == [(A, A), (A, B)]


def test_two_prepared_from_one_text_do_not_meet(farm: KnowledgeBase) -> None:
    one, other = (farm.prepare("?- near(X, Y)", "X") for _ in range(2))
    assert (len(one(X=A)), len(other(X=B)), len(one(X=A))) == (2, 1, 2)


def test_a_value_that_no_fact_holds_stays_unknown(farm: KnowledgeBase) -> None:
    near = farm.prepare("?- near(X, Y)", "X")
    before = farm.facts()
    assert not near(X=NOBODY)
    assert farm.facts() == before
    assert not farm.state.holds(NOBODY)
    change(farm, "near(nobody, a) .")
    assert list(near(X=NOBODY)) == [(NOBODY, A)]


def test_a_prepared_query_follows_changes(farm: KnowledgeBase) -> None:
    far, new = farm.prepare("?- far(X, Y)", "X"), farm.prepare("?- new(X, Y), turbine(Y)", "X")
    assert (len(far(X=B)), len(new(X=K))) == (1, 0)
    change(farm, "near(b, k) . new(k, b) .")
    assert (len(far(X=B)), list(new(X=K))) == (2, [(K, B)])
    with farm.change() as c:
        c.remove_facts("near(b, c) . near(b, k) . turbine(b) .")
    assert (len(far(X=B)), len(new(X=K))) == (0, 0)
    with farm.change() as c:
        c.remove_rules("far(X, Y) :- near(X, Y) .")
    assert len(far(X=A)) == 0


def test_a_refused_change_changes_no_answers(farm: KnowledgeBase) -> None:
    near = farm.prepare("?- near(X, Y)", "X")
    before = near(X=A)
    with pytest.raises(CheckProblem):
        change(farm, "near(a, k) . bad(X, Y) :- near(X, X) .")
    assert near(X=A) == before


def test_a_prepared_query_follows_functions(farm: KnowledgeBase) -> None:
    farm.function(lambda n: n + 1, name="grown")
    grown = farm.prepare("ans(M) :- reads(X, N), M := func:grown(N)", "X")
    assert list(grown(X=A)) == [(2,), (6,)]
    farm.function(lambda n: n * 10, name="grown")
    assert list(grown(X=A)) == [(10,), (50,)]


def test_a_prepared_query_follows_aggregates(farm: KnowledgeBase) -> None:
    farm.aggregate(len, name="size")
    size = farm.prepare("ans(M) :- AGGREGATE(reads(X, N)) ON X WITH size(N) AS M", "X")
    assert list(size(X=A)) == [(2,)]
    farm.aggregate(sum, name="size")
    assert list(size(X=A)) == [(6,)]


def test_an_interrupted_call_leaves_nothing_behind(farm: KnowledgeBase) -> None:
    def picky(value: int) -> int:
        if value == 0:
            raise KeyboardInterrupt
        return value

    farm.function(picky)
    reads = farm.prepare("ans(M) :- reads(X, N), M := func:picky(N)", "X")
    assert list(reads(X=A)) == [(1,), (5,)]
    with pytest.raises(KeyboardInterrupt):
        reads(X=B)
    assert list(reads(X=A)) == [(1,), (5,)]


# Values


@pytest.mark.parametrize(
    "value",
    [
        5,
        0,
        -(2**63),
        2.5,
        True,
        "a",
        "",
        "été",
        datetime(2024, 5, 1, 12, tzinfo=UTC),
        Decimal("1.50"),
        np.int32(5),
        np.float64(2.5),
        A,
        BlankNode("n1"),
        string("a", "en"),
        integer(5),
    ],
    ids=repr,
)
def test_a_value_is_the_term_that_it_is_in_a_fact(kb: KnowledgeBase, value: object) -> None:
    others = (6, 5.0, False, "b", B, datetime(2024, 5, 1, 13, tzinfo=UTC))
    with kb.change() as c:
        c.add_facts([("holds", value, "yes"), *(("holds", other, "no") for other in others)])
    assert list(kb.prepare("ans(Y) :- holds(X, Y)", "X")(X=value)) == [("yes",)]


@pytest.mark.parametrize("value", [None, object(), ("a",), 2**63, float("nan"), "\ud800", string("\ud800")])
def test_a_value_that_is_no_term_is_refused(farm: KnowledgeBase, value: object) -> None:
    near = farm.prepare("?- near(X, Y)", "X")
    assert len(near(X=A)) == 2
    with pytest.raises(LoadProblem, match="T002"):
        near(X=value)
    assert len(near(X=A)) == 2


def test_a_literal_is_no_class(farm: KnowledgeBase) -> None:
    members = farm.prepare("ans(X) :- rdf:type(X, C)", "C")
    assert not members(C="turbine")
    assert len(members(C=ze.iri("turbine"))) == 2


# Names


def test_parameters_are_columns_where_the_query_has_no_head(farm: KnowledgeBase) -> None:
    above = farm.prepare("?- reads(X, N), N > L, M = N + L, not near(X, Y)", "L", "Y")
    assert above.columns == ("X", "N", "L", "M", "Y")
    assert list(above(L=1, Y=B)) == [(B, 5, 1, 6, B), (ze.iri("c"), 2.5, 1, 3.5, B)]


def test_a_query_without_parameters_is_called_with_nothing(farm: KnowledgeBase) -> None:
    masts = farm.prepare("?- mast(X)")
    assert isinstance(masts, ze.Prepared)
    assert masts().rows == farm.query("?- mast(X)").rows
    assert masts() == masts()


def test_a_variable_may_have_any_name(farm: KnowledgeBase) -> None:
    near = farm.prepare("?- near(?self, ?kb)", "self", "kb")
    assert list(near(self=A, kb=B)) == [(A, B)]


def test_prefixes_are_those_of_the_knowledge_base(farm: KnowledgeBase) -> None:
    change(farm, "@prefix ex: <http://e/> . ex:p(ex:a, 1) .")
    assert list(farm.prepare("ans(N) :- ex:p(X, N)", "X")(X=ze.iri("http://e/a"))) == [(1,)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Z", "U009: the query has no variable Z\n  = its variables are: From, To"),
        ("form", "U009: the query has no variable form\n  = its variables are: From, To"),
        ("Form", "U009: the query has no variable Form\n  = did you mean From?"),
        ("?From", "U009: the query has no variable ?From\n  = did you mean From?"),
        ("_", "U009: the query has no variable _\n  = its variables are: From, To"),
    ],
)
def test_a_parameter_that_is_no_variable_is_refused(farm: KnowledgeBase, name: str, message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        farm.prepare("?- near(From, To), near(To, _)", "From", name)
    assert str(caught.value) == f"error {message}"


@pytest.mark.parametrize("values", [{}, {"X": A}, {"X": A, "Z": B}, {"X": A, "Y": B, "Z": B}])
def test_a_call_names_each_parameter_once(farm: KnowledgeBase, values: dict[str, object]) -> None:
    near = farm.prepare("?- near(X, Y)", "X", "Y")
    with pytest.raises(UsageProblem) as caught:
        near(**values)
    assert str(caught.value) == "error U009: this query takes X, Y\n  = give each by its name"
    with pytest.raises(UsageProblem, match="U009: this query takes no values"):
        farm.prepare("?- near(X, Y)")(X=A)


@pytest.mark.parametrize(
    "query",
    [
        "?- AGGREGATE(reads(X, V)) WITH COUNT(V) AS N",
        "?- AGGREGATE(reads(T, V), V > X) ON T WITH COUNT(V) AS N",
        "?- AGGREGATE(reads(T, V), not near(X, T)) ON T WITH COUNT(V) AS N",
        "?- turbine(X), AGGREGATE(reads(X, V)) WITH COUNT(V) AS N",
    ],
)
def test_a_variable_inside_an_aggregate_is_no_parameter(farm: KnowledgeBase, query: str) -> None:
    with pytest.raises(UsageProblem, match="U010: X is a variable inside the AGGREGATE") as caught:
        farm.prepare(query, "X")
    assert "ON X" in caught.value.diagnostics[0].note
    assert caught.value.diagnostics[0].span is not None


def test_all_bad_parameters_are_told_at_once(farm: KnowledgeBase) -> None:
    with pytest.raises(UsageProblem) as caught:
        farm.prepare("?- AGGREGATE(reads(X, V)) ON X WITH COUNT(V) AS N", "Z", "V", "X")
    assert [d.code for d in caught.value.diagnostics] == ["U009", "U010"]


@pytest.mark.parametrize(
    ("query", "kind", "code"),
    [
        ("?- near(X", SyntaxProblem, "L001"),
        ("?- near(X, Y), Z > 3", CheckProblem, "C001"),
        ("?- near(X, Y), Z := func:nowhere(X)", CheckProblem, "C009"),
        ("?- near(Z, Y), X := Y", CheckProblem, "C002"),
    ],
)
def test_a_bad_query_is_refused_when_it_is_prepared(
    farm: KnowledgeBase, query: str, kind: type[ze.ZodiacError], code: str
) -> None:
    with pytest.raises(kind, match=code):
        farm.prepare(query, "X")
