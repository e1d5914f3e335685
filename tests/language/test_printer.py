"""Parse → print → parse is the identity, for random trees, nasty texts and directed corners."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zodiacedge.language.ast import (
    ANONYMOUS,
    Aggregate,
    Argument,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Fold,
    Negation,
    Query,
    Rule,
    Unary,
    Variable,
    atom,
)
from zodiacedge.language.parser import ground, parse_fact, parse_program, parse_query, parse_rule
from zodiacedge.language.printer import (
    format_atom,
    format_conjunct,
    format_expression,
    format_query,
    format_rule,
    format_term,
)
from zodiacedge.language.vocabulary import AGGREGATES, COMPARISONS, FUNCTIONS, RESERVED
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    IRI,
    RDF,
    RDF_TYPE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    BlankNode,
    Literal,
    Term,
    boolean,
    date_time,
    double,
    integer,
    is_iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIXES = {"ex": "http://example.org/", "": "urn:x:", "a.b": "http://example.org/deep/", "xsd": XSD}
DATATYPES = [
    XSD_INTEGER,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD + "date",
    "urn:t",
]
NAMES = [
    "p",
    "q1",
    "Turbine",
    "_x",
    "été",
    "日本",
    "contains",
    "COUNT",
    "prefix",
    "div",
    "X",
    *sorted(RESERVED),
]

# Terms

_characters = st.characters(exclude_categories=["Cs"])
_texts = st.text(_characters, max_size=12) | st.sampled_from(
    ['"', "\\", "\n\r\t\b\f", "'", "\x00\x1f\x7f", "\u2028\x85", "a.b .", "# no // comment", "\\u0041", "😀"]
)
_iri_texts = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(
        ["", "http://example.org/", "http://example.org/a", "urn:x:b", "urn:x:1", "a:b", ":", "_:b"]
    ),
    st.sampled_from(
        [RDF_TYPE, XSD + "integer", RDF + "a-b", "http://example.org/a.b", "http://e/#x", "5", "ǅ"]
    ),
    st.text(_characters, max_size=8).filter(is_iri),
)
_iris = _iri_texts.map(IRI)
_blanks = st.from_regex(r"[a-zA-Z0-9_]([a-zA-Z0-9_.\-]*[a-zA-Z0-9_\-])?", fullmatch=True).map(BlankNode)
_languages = st.sampled_from(["en", "EN-us", "de-1996", "zh-hant-tw"])
_lexicals = st.one_of(
    _texts,
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["05", "+5", "-0", "1.50", ".5", "5.", "1e400", "-1E-400", "+1e5", "NaN", "INF", "true", "1"]
    ),
    st.sampled_from(["2024-02-29T12:00:00Z", "2024-01-01T24:00:00", "2023-02-29T00:00:00", " 5 ", "9" * 20]),
)
_literals: st.SearchStrategy[Literal] = st.one_of(
    _texts.map(string),
    st.builds(string, _texts, _languages),
    st.integers(INTEGER_MIN, INTEGER_MAX).map(integer),
    st.floats(allow_nan=False, allow_infinity=False).map(double),
    st.booleans().map(boolean),
    st.datetimes().map(date_time),
    st.builds(literal, _lexicals, st.sampled_from(DATATYPES)),
)
terms: st.SearchStrategy[Term] = st.one_of(_iris, _blanks, _literals)

# Trees. Anonymous variables stand for `_`; `numbered` gives them the numbers the parser would.

_variables = st.one_of(
    st.sampled_from(["X", "Y", "x", "_a", "Été", "été", "1", "on", "On", "DISTINCT", "__"]).map(Variable),
    st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=5).map(Variable),
    st.just(Variable(ANONYMOUS)),
)
_named = _variables.filter(lambda v: not v.anonymous)
_arguments: st.SearchStrategy[Argument] = st.one_of(_variables, terms)


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Unary, inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%", "div", "**"]), inner, inner),
        st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.lists(inner, max_size=3).map(tuple)),
        st.builds(
            Call,
            st.sampled_from(["f", "Predict", "x-1"]),
            st.lists(inner, max_size=2).map(tuple),
            st.just(value=True),
        ),
    )


expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(_variables, terms, st.integers(-3, 3).map(integer)), _larger, max_leaves=8
)


@st.composite
def atoms(draw: Callable[..., Any]) -> Atom:
    args = tuple(draw(st.lists(_arguments, max_size=4)))
    name: str = draw(_iri_texts)
    if name == RDF_TYPE and len(args) == 2 and isinstance(args[1], Literal):
        args = (args[0], IRI("c"))
    return atom(name, args)


_plain: st.SearchStrategy[Conjunct] = st.one_of(
    atoms(),
    atoms().map(Negation),
    st.builds(Comparison, expressions, st.sampled_from(COMPARISONS), expressions),
    st.builds(Binding, _variables, expressions),
)
_folds = st.one_of(
    st.builds(Fold, st.sampled_from(AGGREGATES), _variables, _variables, st.booleans()),
    st.builds(
        Fold,
        st.sampled_from(["geo_mean", "Mode", "X", "été"]),
        _variables,
        _variables,
        st.booleans(),
        st.just(value=True),
    ),
)
_bodies = st.lists(_plain, min_size=1, max_size=4).map(tuple)
_aggregates = st.builds(
    Aggregate,
    _bodies,
    st.lists(_variables, max_size=2).map(tuple),
    st.lists(_folds, min_size=1, max_size=3).map(tuple),
)


@st.composite
def rules(draw: Callable[..., Any]) -> Rule:
    body: tuple[Conjunct, ...] = draw(_bodies)
    if draw(st.booleans()):
        body += (draw(_aggregates),)
    label: str = draw(st.sampled_from(["", "r1", "the-rule", "règle", "ex", "_9"]))
    return numbered(Rule(draw(atoms()), body, label))


class _Numbering:
    """Gives each anonymous variable the number that the parser would, in the order of the text."""

    def __init__(self) -> None:
        self._last = 0

    def variable(self, v: Variable) -> Variable:
        if not v.anonymous:
            return v
        self._last += 1
        return Variable(f"{ANONYMOUS}{self._last}")

    def expression(self, node: Expression) -> Expression:
        match node:
            case Variable():
                return self.variable(node)
            case Unary(operand=operand):
                return Unary(self.expression(operand))
            case Binary(operator=operator, left=left, right=right):
                return Binary(operator, self.expression(left), self.expression(right))
            case Call(args=args):
                return replace(node, args=tuple(map(self.expression, args)))
            case _:
                return node

    def atom(self, node: Atom) -> Atom:
        return Atom(
            node.relation, tuple(self.variable(a) if isinstance(a, Variable) else a for a in node.args)
        )

    def conjunct(self, node: Conjunct) -> Conjunct:
        match node:
            case Atom():
                return self.atom(node)
            case Negation(atom=inner):
                return Negation(self.atom(inner))
            case Comparison(left=left, operator=operator, right=right):
                return Comparison(self.expression(left), operator, self.expression(right))
            case Binding(variable=variable, expression=expression):
                return Binding(self.variable(variable), self.expression(expression))
            case Aggregate(body=body, groups=groups, folds=folds):
                return Aggregate(
                    tuple(map(self.conjunct, body)),
                    tuple(map(self.variable, groups)),
                    tuple(
                        replace(f, argument=self.variable(f.argument), target=self.variable(f.target))
                        for f in folds
                    ),
                )


def numbered(rule: Rule) -> Rule:
    numbering = _Numbering()
    return Rule(numbering.atom(rule.head), tuple(map(numbering.conjunct, rule.body)), rule.label)


@given(terms)
@settings(max_examples=400)
def test_a_term_is_read_back_as_it_was(term: Term) -> None:
    assert parse_fact(f"p(a, {format_term(term)})").args[1] == term
    shown = format_term(term, PREFIXES)
    assert parse_fact(f"p(a, {shown})", prefixes=PREFIXES).args[1] == term


@given(rules())
@settings(max_examples=120)
def test_a_rule_is_read_back_as_it_was(rule: Rule) -> None:
    assert parse_rule(format_rule(rule)) == rule
    assert parse_rule(format_rule(rule, PREFIXES), prefixes=PREFIXES) == rule


@given(st.lists(rules(), max_size=3), st.lists(st.lists(terms, max_size=3).map(tuple), max_size=3))
@settings(max_examples=50)
def test_a_program_is_read_back_as_it_was(some: list[Rule], facts: list[tuple[Term, ...]]) -> None:
    declared = "\n".join(f"@prefix {p}: <{iri}> ." for p, iri in PREFIXES.items())
    stated = [atom("p", args) for args in facts]
    texts = [*(format_rule(r, PREFIXES) for r in some), *(f"{format_atom(f, PREFIXES)} ." for f in stated)]
    program = parse_program("\n".join([declared, *texts]))
    assert program.rules == tuple(some)
    assert program.facts == tuple(stated)
    assert dict(program.prefixes) == PREFIXES


@given(rules(), st.lists(_named | terms, max_size=3).map(tuple))
@settings(max_examples=50)
def test_a_query_is_read_back_as_it_was(rule: Rule, columns: tuple[Argument, ...]) -> None:
    body = numbered(replace(rule, head=Atom("ans", ()))).body
    query = Query(columns, body)
    assert parse_query(format_query(query)) == query


@given(expressions, expressions)
@settings(max_examples=120)
def test_different_expressions_print_differently(first: Expression, second: Expression) -> None:
    if format_expression(first) == format_expression(second):
        assert first == second


TEXTS = [
    "r1: p(X, Y) :- q(X, _), not r(_, Y), X -5 < Y ** 2 ** 3, Z = (X + Y) * -3 .",
    'p(X) :- q(X, "a\\n\\"b\\"\\\\", "b"@en-gb, "c"^^<urn:t>, 1.50, -2e3, 007, true), ?on > 1 .',
    "p(X, N) :- s(X), AGGREGATE(q(X, Y), not r(_), Y > -1) ON X WITH COUNT(DISTINCT Y) AS N, mo(Y) AS ?m .",
    "p(X) :- rdf:type(X, C), rdf:type(X, d), <on>(X), <True>(X), <http://e/a.b>(X) .",
    "p(X) :- q(X), -2 ** 2 = X, (-2) ** 2 = X, - -X = 1, -(5) = X, 2 ** -X = 1, (2 ** X) ** 2 = 1 .",
    "p(X) :- q(X), X - (1 - 2) = X - 1 - 2, X / (2 * 3) = X / 2 * 3, X div 2 % 3 = 1 .",
    'p() :- func:f(func:g(1), "x") = min(1, 2, abs(-1)), ?x := concat() .',
    "rdf:type(X, Y) :- rdf:type(X, Z), rdfs:subClassOf(Z, Y) .",
    "p(_:b1, <a>, <A>, b, <_c>, <true>, X) :- q(X) .",
    "p(X) :- q(X), BIND(_ + X AS _), _ := _ * 2, BIND(X AS _), _ := X .",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    rule = parse_rule(text)
    assert parse_rule(format_rule(rule)) == rule
    assert format_rule(parse_rule(format_rule(rule))) == format_rule(rule)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("COMP(X, <, 5)", "X < 5"),
        ("BIND(X AS Y)", "Y := X"),
        ("¬q(X)", "not q(X)"),
        ("rdf:type(X, turbine)", "turbine(X)"),
        ("rdf:type(X, Y)", "rdf:type(X, Y)"),
        ("q(X, <wt1>, <Wt1>)", "q(X, wt1, <Wt1>)"),
        ("q(X, ?x, ?X)", "q(X, ?x, X)"),
        ("X = ((1 + 2))", "X = 1 + 2"),
        ("X = 2 * (1 + 2)", "X = 2 * (1 + 2)"),
        ("X = 05.50", "X = 5.5"),
        ("X = 1e1", "X = 1.0E1"),
        ("aggregate(q(X)) with count(X) as N", "AGGREGATE(q(X)) WITH COUNT(X) AS N"),
    ],
)
def test_how_conjuncts_print(text: str, shown: str) -> None:
    (found,) = parse_rule(f"h() :- {text} .").body
    assert format_conjunct(found) == shown


def test_a_name_with_a_prefix_prints_with_it() -> None:
    rule = parse_rule(
        "@prefix ex: <http://example.org/> . ex:p(ex:a, X) :- ex:q(X, <http://example.org/b.c>) ."
    )
    assert format_rule(rule, PREFIXES) == "ex:p(ex:a, X) :- ex:q(X, <http://example.org/b.c>) ."
    assert format_rule(rule).startswith("<http://example.org/p>(")


def test_a_tagged_string_without_a_tag_is_read_back_as_it_was() -> None:
    (found,) = parse_program('p("x"^^rdf:langString) .').facts
    assert ground(found) == parse_fact(format_atom(found))


def test_a_fact_of_python_values_is_printed_as_it_is_added() -> None:
    args: tuple[Any, ...] = (IRI("wt1"), 93, "high", True)
    fact = Fact("reading", args)
    assert str(fact) == 'reading(wt1, 93, "high", true)'
    assert repr(fact) == f"<Fact {fact}>"
