"""Every form the language has, as a text and the tree it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zodiacedge.errors import SyntaxProblem
from zodiacedge.language.ast import (
    Aggregate,
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
    Rule,
    Unary,
    Variable,
    atom,
    fact,
)
from zodiacedge.language.parser import parse_fact, parse_program, parse_query, parse_rule, read_program
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES, FUNCTIONS, RESERVED
from zodiacedge.terms import (
    IRI,
    RDF_TYPE,
    XSD,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Literal,
    Term,
    boolean,
    integer,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable

W, X, Y, Z, N = (Variable(name) for name in "WXYZN")


def body(text: str) -> tuple[Conjunct, ...]:
    return parse_rule(f"h() :- {text} .").body


def value(text: str) -> Expression:
    (found,) = body(f"?v := {text}")
    assert isinstance(found, Binding)
    return found.expression


def term(text: str) -> Term:
    return parse_fact(f"p({text}, a)").args[0]


def codes(text: str) -> list[str]:
    return [d.code for d in read_program(text)[1]]


# Rules, facts, labels


def test_a_rule_has_a_head_and_a_body() -> None:
    rule = parse_rule("hasNeighbour(X, Y) :- hasNeighbour(Y, X) .")
    assert rule == Rule(atom("hasNeighbour", (X, Y)), (atom("hasNeighbour", (Y, X)),))


def test_a_ground_head_without_a_body_is_a_fact() -> None:
    program = parse_program("hasNeighbour(<wt1>, <wt2>) .")
    assert program.rules == ()
    assert program.facts == (atom("hasNeighbour", (IRI("wt1"), IRI("wt2"))),)


def test_white_space_and_line_breaks_are_free() -> None:
    spaced = parse_rule("p ( X , Y )\n\t:-\r\n q ( X )\n,\n r ( Y )\n.")
    assert spaced == parse_rule("p(X,Y):-q(X),r(Y).")


def test_statements_need_no_space_between_them() -> None:
    program = parse_program("p(a).q(b).r(X):-p(X).")
    assert (len(program.facts), len(program.rules)) == (2, 1)


@pytest.mark.parametrize("mark", ["#", "//"])
def test_a_comment_goes_to_the_end_of_the_line(mark: str) -> None:
    program = parse_program(f"{mark} first\np(a) . {mark} p(b) .\np(c) {mark} not yet\n. {mark} last")
    assert [f.args[0] for f in program.facts] == [IRI("a"), IRI("c")]


def test_comment_marks_inside_strings_and_iris_are_text() -> None:
    assert term('"a # b // c"') == string("a # b // c")
    assert term("<http://e.org/a#b>") == IRI("http://e.org/a#b")


def test_division_twice_is_a_comment() -> None:
    assert body("X = 6 // 2\n") == (Comparison(X, "=", integer(6)),)


@pytest.mark.parametrize("label", ["r1", "r10_new", "the-rule", "R1", "règle", "_x"])
def test_a_label_is_a_name_a_colon_and_white_space(label: str) -> None:
    rule = parse_rule(f"{label}: p(X) :- q(X) .")
    assert rule.label == label
    assert rule.head == atom("p", (X,))


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r\n"])
def test_any_white_space_ends_a_label(space: str) -> None:
    assert parse_rule(f"r1:{space}p(X) :- q(X) .").label == "r1"


def test_a_prefixed_name_has_no_white_space_after_its_colon() -> None:
    rule = parse_rule("@prefix r1: <http://e/> . r1:p(X) :- r1:q(X) .")
    assert rule.label == ""
    assert rule.head.predicate.name == "http://e/p"


def test_a_label_before_a_prefixed_head() -> None:
    rule = parse_rule("@prefix ex: <http://e/> . ex: ex:p(X) :- ex:q(X) .")
    assert (rule.label, rule.head.predicate.name) == ("ex", "http://e/p")


def test_the_first_program_of_the_language_reference() -> None:
    program = parse_program("""
        @prefix ex: <http://example.org/> .               # prefixes, as in Turtle
        # the wind-farm rules                             # '#' and '//' start a comment
        r1: hasNeighbour(X, Y) :- hasNeighbour(Y, X) .    // an optional label
        ex:alarm(?t) :- ex:hot(?t), not ex:muted(?t) .
        hasNeighbour(<wt1>, <wt2>) .
    """)
    assert len(program.rules) == 2
    assert len(program.facts) == 1
    assert program.prefixes == (("ex", "http://example.org/"),)


# Predicates


@pytest.mark.parametrize("name", ["p11", "MoreThan3Neighbours", "_p", "été", "日本", "p_q", "count", "abs"])
def test_an_identifier_is_a_predicate(name: str) -> None:
    assert parse_rule(f"{name}(X, Y) :- q(X, Y) .").head == Atom(name, (X, Y))


def test_a_name_and_the_same_name_in_angle_brackets_are_one_predicate() -> None:
    assert parse_rule("p(X, X) :- <q>(X) .") == parse_rule("<p>(X, X) :- q(X) .")


def test_predicates_may_be_iris_and_prefixed_names() -> None:
    rule = parse_rule("@prefix e: <http://e/> . e:p(X, Y) :- <http://e/q>(X, Y) .")
    assert rule.head.relation == "http://e/p"
    assert rule.body == (Atom("http://e/q", (X, Y)),)


@pytest.mark.parametrize("arity", [0, 1, 2, 3, 7, 50])
def test_any_arity(arity: int) -> None:
    args = tuple(Variable(f"V{i}") for i in range(arity))
    text = ", ".join(v.name for v in args)
    rule = parse_rule(f"p({text}) :- q({text}) .")
    assert rule.head == atom("p", args)
    assert rule.head.predicate == ("p", arity)


def test_a_unary_atom_is_an_rdf_type_atom() -> None:
    assert parse_rule("p(X) :- q(X) .").head == Atom(RDF_TYPE, (X, IRI("p")))
    assert parse_rule("rdf:type(X, p) :- q(X) .") == parse_rule("p(X) :- rdf:type(X, q) .")
    assert parse_rule("p(X) :- q(X) .").head.predicate == ("p", 1)


def test_a_variable_class_stays_a_variable() -> None:
    rule = parse_rule("rdf:type(X, Y) :- rdf:type(X, Z), sub(Z, Y) .")
    assert rule.head == Atom(RDF_TYPE, (X, Y))
    assert rule.head.predicate == (RDF_TYPE, 2)


@pytest.mark.parametrize("text", ["p", "p .", "p :- q() .", "h() :- p .", "h() :- q(), p, r() ."])
def test_a_bare_name_gets_a_hint(text: str) -> None:
    found = read_program(text)[1]
    assert found[0].code == "L012"
    assert "p()" in found[0].note


# Reserved words


@pytest.mark.parametrize("word", sorted(RESERVED))
@pytest.mark.parametrize("shape", [str.lower, str.upper, str.title])
def test_reserved_words_are_no_predicates_in_any_case(word: str, shape: Callable[[str], str]) -> None:
    assert codes(f"{shape(word)}(X, Y) :- q(X, Y) .") == ["L004"]
    assert parse_rule(f"<{shape(word)}>(X, Y) :- q(X, Y) .").head.relation == shape(word)


@pytest.mark.parametrize("word", sorted(RESERVED - {"true", "false"}))
def test_reserved_words_are_no_constants_and_no_bare_variables(word: str) -> None:
    assert codes(f"p({word}) .") == ["L004"]
    assert codes(f"p(X) :- q(X, {word.title()}) .") == ["L004"]
    assert parse_rule(f"p(X) :- q(X, ?{word}) .").body == (Atom("q", (X, Variable(word))),)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_no_labels(word: str) -> None:
    assert codes(f"{word.upper()}: p(X) :- q(X) .") == ["L004"]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_names_are_not_reserved(name: str) -> None:
    assert body(f'{name}(X, "a")') == (Atom(name, (X, string("a"))),)
    assert parse_rule(f"{name}: {name}({name}, X) :- q({name}, X) .").head == Atom(name, (IRI(name), X))


@pytest.mark.parametrize("name", ["count", "Sum", "AVG", "min", "max", "med", "distinct", "div", "prefix"])
def test_aggregate_names_and_other_words_are_not_reserved(name: str) -> None:
    assert parse_rule(f"{name}(X, Y) :- q(X, Y) .").head == Atom(name, (X, Y))


def test_keywords_in_any_case() -> None:
    text = (
        "p(X, V) :- q(X) {and} {not} r(X) {and} {agg}(s(X, Y) {and} {bind}(Y {as} Z) {and} {comp}(Z, >, 0))"
    )
    text += " {on} X {with} count(Z) {as} V ."
    words = ("and", "not", "agg", "bind", "as", "comp", "on", "with")
    lower = {w: w.replace("agg", "aggregate") for w in words}
    upper = {w: t.upper() for w, t in lower.items()}
    mixed = {w: t.title() for w, t in lower.items()}
    assert parse_rule(text.format(**lower)) == parse_rule(text.format(**upper))
    assert parse_rule(text.format(**lower)) == parse_rule(text.format(**mixed))


# Variables


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("?x", "x"),
        ("?X", "X"),
        ("X", "X"),
        ("Temp", "Temp"),
        ("_a", "_a"),
        ("_A1", "_A1"),
        ("?_a", "_a"),
        ("Été", "Été"),
        ("?été", "été"),
        ("?日本", "日本"),
        ("?1", "1"),
        ("?on", "on"),
    ],
)
def test_variables(text: str, name: str) -> None:
    assert body(f"q(a, {text})") == (Atom("q", (IRI("a"), Variable(name))),)


def test_a_variable_with_and_without_its_question_mark_is_one_variable() -> None:
    assert parse_rule("p(?X) :- q(X, ?x) .") == parse_rule("p(X) :- q(?X, ?x) .")
    assert parse_rule("p(?x) :- q(?x) .") != parse_rule("p(?x) :- q(X) .")


def test_an_underscore_is_a_fresh_variable_each_time() -> None:
    (found,) = body("q(_, _, X)")
    assert isinstance(found, Atom)
    first, second, third = found.args
    assert isinstance(first, Variable)
    assert isinstance(second, Variable)
    assert first != second
    assert (first.anonymous, second.anonymous, third) == (True, True, X)


def test_a_question_mark_before_an_underscore_is_refused() -> None:
    assert codes("p(X) :- q(X, ?_) .") == ["L017"]


# Constants


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<http://e.org/a>", IRI("http://e.org/a")),
        ("<wt1>", IRI("wt1")),
        ("<>", IRI("")),
        ("<a#b?c=d&e=%20>", IRI("a#b?c=d&e=%20")),
        ("<\\u00e9>", IRI("é")),
        ("<\\U0001F600>", IRI("😀")),
        ("wt1", IRI("wt1")),
        ("été", IRI("été")),
        ("日本", IRI("日本")),
        ("rdf:type", IRI(RDF_TYPE)),
        ('"text"', string("text")),
        ('""', string("")),
        ('"it\'s"', string("it's")),
        ('"text"@en', string("text", "en")),
        ('"text"@EN-us', string("text", "en-us")),
        ('"5"^^xsd:integer', integer(5)),
        ('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', integer(5)),
        ('"5"^^xsd:string', string("5")),
        ('"x"^^xsd:integer', Literal("x", XSD_INTEGER)),
        ('"P1D"^^xsd:duration', Literal("P1D", XSD + "duration")),
        ("true", boolean(value=True)),
        ("FALSE", boolean(value=False)),
        ("_:b1", BlankNode("b1")),
        ("_:b.1-x", BlankNode("b.1-x")),
        ("5", integer(5)),
        ("05", integer(5)),
        ("-5", integer(-5)),
        ("+5", integer(5)),
        ("5.0", literal("5.0", XSD_DECIMAL)),
        ("1.50", literal("1.5", XSD_DECIMAL)),
        ("-0.5", literal("-0.5", XSD_DECIMAL)),
        ("5e0", literal("5", XSD_DOUBLE)),
        ("5.5E-3", literal("0.0055", XSD_DOUBLE)),
        ("-1e+2", literal("-100", XSD_DOUBLE)),
        ("99999999999999999999", Literal("99999999999999999999", XSD_INTEGER)),
    ],
)
def test_constants(text: str, expected: Term) -> None:
    assert term(text) == expected
    assert body(f"q(X, {text})") == (Atom("q", (X, expected)),)
    assert value(text) == expected


def test_an_integer_a_decimal_and_a_double_are_three_terms() -> None:
    assert len({term("5"), term("5.0"), term("5e0")}) == 3


@pytest.mark.parametrize(
    ("escape", "character"),
    [
        ("t", "\t"),
        ("b", "\b"),
        ("n", "\n"),
        ("r", "\r"),
        ("f", "\f"),
        ('"', '"'),
        ("'", "'"),
        ("\\", "\\"),
        ("u0041", "A"),
        ("u00e9", "é"),
        ("U0001F600", "😀"),
    ],
)
def test_escapes_in_strings(escape: str, character: str) -> None:
    assert term(f'"a\\{escape}b"') == string(f"a{character}b")


@pytest.mark.parametrize("escape", ["q", "x41", "u00", "U00110000", "ud800", "0", " "])
def test_what_is_no_escape_is_refused(escape: str) -> None:
    assert codes(f'p("a\\{escape}b") .') == ["L002"]


@pytest.mark.parametrize("text", ["<a\\u0020b>", "<a\\u003eb>", "<\\U00000000>"])
def test_an_escape_brings_no_forbidden_character_into_an_iri(text: str) -> None:
    assert codes(f"p({text}) .") == ["L002"]


@pytest.mark.parametrize("text", ["<a b>", "<a<b>", '<a"b>', "<a{b>", "<a", "<a\\nb>"])
def test_what_is_no_iri_is_refused(text: str) -> None:
    assert codes(f"p({text}) .")


@pytest.mark.parametrize(
    "text", ["'a'", '"a', '"a\nb"', '"a" @en', '"5" ^^xsd:integer', '"5"^^integer', "5x"]
)
def test_what_is_no_term_is_refused(text: str) -> None:
    assert codes(f"p({text}) .")


@pytest.mark.parametrize("number", ["5", "5.0", "5e0", "-5", "+0.5"])
def test_the_final_full_stop_is_not_a_part_of_a_number(number: str) -> None:
    assert parse_program(f"p({number}).").facts == parse_program(f"p({number}) .").facts
    assert parse_rule(f"p(X) :- q(X), X = {number}.") == parse_rule(f"p(X) :- q(X), X = {number} .")


def test_the_final_full_stop_is_not_a_part_of_a_name() -> None:
    text = "@prefix ex: <http://e/> . p(X) :- q(X), X = {}."
    assert parse_rule(text.format("ex:a.b")).body[1] == Comparison(X, "=", IRI("http://e/a.b"))
    assert parse_rule(text.format("_:b.c")).body[1] == Comparison(X, "=", BlankNode("b.c"))
    assert parse_rule(text.format("wt1")).body[1] == Comparison(X, "=", IRI("wt1"))


@pytest.mark.parametrize("number", [".5", "1.", "1.e5", "0x1F", "1_000", "1e", "--5"])
def test_other_ways_to_write_numbers_are_refused(number: str) -> None:
    assert codes(f"p({number}) .")


# Prefixes


@pytest.mark.parametrize(
    "declaration", ["@prefix ex: <http://e/> .", "PREFIX ex: <http://e/>", "prefix ex:<http://e/>"]
)
def test_prefix_declarations(declaration: str) -> None:
    program = parse_program(f"{declaration}\nex:p(ex:a, ex:b-c, ex:1, ex:a:b, ex:%20) .")
    assert program.prefixes == (("ex", "http://e/"),)
    names = ("a", "b-c", "1", "a:b", "%20")
    assert program.facts == (Atom("http://e/p", tuple(IRI("http://e/" + n) for n in names)),)


def test_the_empty_prefix() -> None:
    assert parse_program("@prefix : <http://e/> . :p(:a, :b) .").facts[0].relation == "http://e/p"


def test_a_prefix_may_be_declared_again() -> None:
    program = parse_program("@prefix e: <http://1/> . p(e:a) . @prefix e: <http://2/> . p(e:a) .")
    assert [f.args[0] for f in program.facts] == [IRI("http://1/a"), IRI("http://2/a")]


@pytest.mark.parametrize("prefix", ["rdf", "rdfs", "xsd", "owl"])
def test_default_prefixes(prefix: str) -> None:
    assert term(f"{prefix}:a") == IRI(DEFAULT_PREFIXES[prefix] + "a")


def test_a_default_prefix_may_be_declared_otherwise() -> None:
    assert parse_program("@prefix owl: <http://e/> . p(owl:a) .").facts[0].args[0] == IRI("http://e/a")


def test_prefixes_from_outside() -> None:
    prefixes = {"ex": "http://e/"}
    assert parse_fact("ex:p(a, ex:b)", prefixes=prefixes) == Fact("http://e/p", (IRI("a"), IRI("http://e/b")))
    assert parse_query("?- ex:p(X, Y)", prefixes=prefixes).body == (Atom("http://e/p", (X, Y)),)
    assert parse_program("p(ex:a) .", prefixes=prefixes).prefixes == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ex:p(a) .", "L018"),
        ("p(ex:a) .", "L018"),
        ("@prefix func: <http://e/> .", "L007"),
        ("PREFIX func: <http://e/>", "L007"),
        ("@base <http://e/> .", "L006"),
        ("@prefix ex <http://e/> .", "L001"),
        ('@prefix ex: "http://e/" .', "L001"),
        ("@prefix ex: <http://e/>", "L001"),
    ],
)
def test_broken_prefixes(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_prefix_is_a_predicate_where_a_bracket_follows() -> None:
    assert parse_program("prefix(a, b) .").facts == (Atom("prefix", (IRI("a"), IRI("b"))),)


# Conjunction and negation


@pytest.mark.parametrize("word", [",", " and ", " AND ", " And ", "∧", " ∧ ", "&", " & ", "and "])
def test_conjunction(word: str) -> None:
    assert body(f"p(X, Y){word}q(X, Y)") == (Atom("p", (X, Y)), Atom("q", (X, Y)))


@pytest.mark.parametrize("word", ["not ", "NOT ", "Not\n", "!", "! ", "¬", "¬ "])
def test_negation(word: str) -> None:
    assert body(f"q(X, Y), {word}p(X, Z)") == (Atom("q", (X, Y)), Negation(Atom("p", (X, Z))))


def test_a_body_may_be_negative_throughout() -> None:
    assert body("not q()") == (Negation(Atom("q", ())),)


@pytest.mark.parametrize("text", ["not X = 5", "not not q(X)", "not (q(X))", "! !q(X)", "not COMP(X, =, 5)"])
def test_only_atoms_are_negated(text: str) -> None:
    assert codes(f"p(X) :- q(X), {text} .")


# Comparisons


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "form", ["X {} Y", "X{}Y", "COMP(X, {}, Y)", "COMP(X,{},Y)", "comp( X ,{}, Y )", "Comp(?X, {},?Y)"]
)
def test_comparisons(sign: str, form: str) -> None:
    assert body(form.format(sign)) == (Comparison(X, sign, Y),)


def test_comparisons_without_spaces() -> None:
    assert body("COMP(X,<,Y),COMP(Y,>,Z)") == (Comparison(X, "<", Y), Comparison(Y, ">", Z))
    assert body("X<Y,Y>Z") == (Comparison(X, "<", Y), Comparison(Y, ">", Z))
    assert body("X<5,6>Y,X<=Y,Y>=X") == (
        Comparison(X, "<", integer(5)),
        Comparison(integer(6), ">", Y),
        Comparison(X, "<=", Y),
        Comparison(Y, ">=", X),
    )


def test_less_than_beside_iris() -> None:
    assert body("X<<a>,<b><X,COMP(<a>,<,<b>)") == (
        Comparison(X, "<", IRI("a")),
        Comparison(IRI("b"), "<", X),
        Comparison(IRI("a"), "<", IRI("b")),
    )


def test_operands_are_any_expression() -> None:
    assert body("COMP(X + 1, >=, abs(Y) * 2)") == body("X + 1 >= abs(Y) * 2")


@pytest.mark.parametrize(
    "text", ["X == 5", "X <> 5", "X =< 5", "X => 5", "X = Y = 5", "COMP(X, ==, 5)", "COMP(X, 5)"]
)
def test_other_signs_are_refused(text: str) -> None:
    assert codes(f"p(X) :- q(X), {text} .")


def test_a_call_alone_is_an_atom_and_compared_a_test() -> None:
    a = string("a")
    assert body('contains(X, "a")') == (Atom("contains", (X, a)),)
    assert body('contains(X, "a") = true') == (
        Comparison(Call("contains", (X, a)), "=", boolean(value=True)),
    )
    assert body('true = contains(X, "a")') == (
        Comparison(boolean(value=True), "=", Call("contains", (X, a))),
    )
    assert body('not contains(X, "a")') == (Negation(Atom("contains", (X, a))),)


@pytest.mark.parametrize("text", ["X", "5", '"a"', "X + 1", "-X", "(X)", "1 < 2 < 3"])
def test_an_expression_alone_is_no_conjunct(text: str) -> None:
    assert codes(f"p(X) :- q(X), {text} .")


# Bindings


@pytest.mark.parametrize(
    "form", ["BIND({} AS ?v)", "bind({} as ?v)", "Bind( {} As ?v )", "?v := {}", "?v:={}"]
)
def test_bindings(form: str) -> None:
    assert body(form.format("X + 1")) == (Binding(Variable("v"), Binary("+", X, integer(1))),)


def test_an_equality_stays_an_equality_in_the_tree() -> None:
    assert body("q(X), Y = X + 1, X + 2 = Z")[1:] == (
        Comparison(Y, "=", Binary("+", X, integer(1))),
        Comparison(Binary("+", X, integer(2)), "=", Z),
    )


@pytest.mark.parametrize("text", ["5 := X", "a := X", "X + 1 := 5", "abs(X) := 5"])
def test_only_a_variable_is_bound(text: str) -> None:
    assert codes(f"p(X) :- q(X), {text} .") in (["L011"], ["L016"])


@pytest.mark.parametrize("text", ["BIND(5)", "BIND(5, X)", "BIND(5 AS 6)", "BIND(AS X)", "BIND 5 AS X"])
def test_broken_bindings(text: str) -> None:
    assert codes(f"p(X) :- q(X), {text} .")


# Expressions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X -5", Binary("-", X, integer(5))),
        ("X - 5", Binary("-", X, integer(5))),
        ("X-5", Binary("-", X, integer(5))),
        ("X - -5", Binary("-", X, integer(-5))),
        ("X +5", Binary("+", X, integer(5))),
        ("-X", Unary(X)),
        ("- 5", Unary(integer(5))),
        ("-(5)", Unary(integer(5))),
        ("- -X", Unary(Unary(X))),
        ("X + Y + Z", Binary("+", Binary("+", X, Y), Z)),
        ("X - Y - Z", Binary("-", Binary("-", X, Y), Z)),
        ("X - (Y - Z)", Binary("-", X, Binary("-", Y, Z))),
        ("X + Y * Z", Binary("+", X, Binary("*", Y, Z))),
        ("X * Y + Z", Binary("+", Binary("*", X, Y), Z)),
        ("(X + Y) * Z", Binary("*", Binary("+", X, Y), Z)),
        ("X / Y / Z", Binary("/", Binary("/", X, Y), Z)),
        ("X div Y % Z", Binary("%", Binary("div", X, Y), Z)),
        ("X ** Y ** Z", Binary("**", X, Binary("**", Y, Z))),
        ("(X ** Y) ** Z", Binary("**", Binary("**", X, Y), Z)),
        ("-X ** Y", Unary(Binary("**", X, Y))),
        ("-2 ** 2", Unary(Binary("**", integer(2), integer(2)))),
        ("+2 ** 2", Binary("**", integer(2), integer(2))),
        ("(-2) ** 2", Binary("**", integer(-2), integer(2))),
        ("2 ** -1", Binary("**", integer(2), integer(-1))),
        ("2 ** -X", Binary("**", integer(2), Unary(X))),
        ("-X * Y", Binary("*", Unary(X), Y)),
        ("X * -Y", Binary("*", X, Unary(Y))),
        ("((X))", X),
        ("abs(X - Y)", Call("abs", (Binary("-", X, Y),))),
        ("ABS(X)", Call("abs", (X,))),
        ("min(X, Y, 3)", Call("min", (X, Y, integer(3)))),
        ("concat()", Call("concat", ())),
        ("func:predict(X, 1)", Call("predict", (X, integer(1)), registered=True)),
        ("func:Predict(func:g())", Call("Predict", (Call("g", (), registered=True),), registered=True)),
        ("abs", IRI("abs")),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    assert value(text) == expected


def test_a_sign_belongs_to_a_number_only_where_an_operand_may_start() -> None:
    assert body("X -5 > 0") == (Comparison(Binary("-", X, integer(5)), ">", integer(0)),)
    assert body("X = -5") == (Comparison(X, "=", integer(-5)),)
    assert body("q(X, -5)") == (Atom("q", (X, integer(-5))),)
    assert body("X > -5 -5") == (Comparison(X, ">", Binary("-", integer(-5), integer(5))),)


@pytest.mark.parametrize("text", ["nosuch(X)", "<abs>(X)", "xsd:abs(X)", "count(X)"])
def test_what_is_no_function_is_refused(text: str) -> None:
    assert codes(f"p(X) :- q(X), Y = {text} .") == ["L016"]


@pytest.mark.parametrize("text", ["q(X + 1)", "q(-X)", "q(abs(X))", "q(r(X))"])
def test_arguments_of_atoms_are_terms_and_variables(text: str) -> None:
    assert codes(f"p(X) :- {text} .") in (["L015"], ["L016"])


def test_brackets_around_a_term_change_nothing() -> None:
    assert body("q((X), (5))") == body("q(X, 5)")


# Aggregates


def test_an_aggregate_with_groups_and_results() -> None:
    rule = parse_rule("p(X, V, W) :- q(X), AGGREGATE(r(X, Y, Z)) ON ?X, Y WITH SUM(?Z) AS V, max(Z) AS ?W .")
    v = Variable("V")
    assert rule.body == (
        atom("q", (X,)),
        Aggregate((Atom("r", (X, Y, Z)),), (X, Y), (Fold("SUM", Z, v), Fold("MAX", Z, W))),
    )
    assert rule.aggregate is rule.body[1]


def test_on_may_be_absent() -> None:
    (found,) = body("AGGREGATE(r(X, Y)) WITH COUNT(Y) AS N")
    assert found == Aggregate((Atom("r", (X, Y)),), (), (Fold("COUNT", Y, N),))


@pytest.mark.parametrize("op", ["COUNT", "SUM", "AVG", "MIN", "MAX", "MED"])
@pytest.mark.parametrize("shape", [str.lower, str.upper, str.title])
def test_built_in_aggregates_in_any_case(op: str, shape: Callable[[str], str]) -> None:
    (found,) = body(f"AGGREGATE(r(X, Y)) ON X WITH {shape(op)}(Y) AS N")
    assert isinstance(found, Aggregate)
    assert found.folds == (Fold(op, Y, N),)


def test_a_registered_aggregate_keeps_its_case() -> None:
    (found,) = body("AGGREGATE(r(X, Y)) ON X WITH Geo_Mean(Y) AS N")
    assert isinstance(found, Aggregate)
    assert found.folds == (Fold("Geo_Mean", Y, N, registered=True),)


@pytest.mark.parametrize("word", ["DISTINCT", "distinct", "Distinct"])
def test_distinct(word: str) -> None:
    (found,) = body(f"AGGREGATE(r(X, Y)) ON X WITH COUNT({word} Y) AS N, COUNT({word} ?Y) AS Z")
    assert isinstance(found, Aggregate)
    assert found.folds == (Fold("COUNT", Y, N, distinct=True), Fold("COUNT", Y, Z, distinct=True))


def test_distinct_is_a_variable_where_nothing_else_is_there() -> None:
    (found,) = body("AGGREGATE(r(X, Distinct)) ON X WITH COUNT(Distinct) AS N, SUM(DISTINCT Distinct) AS Z")
    assert isinstance(found, Aggregate)
    distinct = Variable("Distinct")
    assert found.folds == (Fold("COUNT", distinct, N), Fold("SUM", distinct, Z, distinct=True))


def test_comparisons_negation_and_bindings_inside_an_aggregate() -> None:
    (found,) = body("AGGREGATE(r(X, Y), Y > 3 and not s(Y) ∧ BIND(Y * 2 AS Z)) ON X WITH SUM(Z) AS N")
    assert isinstance(found, Aggregate)
    assert [type(c) for c in found.body] == [Atom, Comparison, Negation, Binding]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("AGGREGATE(r(X, Y)) ON X WITH COUNT(Y) AS N, s(N)", "L008"),
        ("AGGREGATE(r(X, Y)) ON X WITH COUNT(Y) AS N and s(N)", "L008"),
        ("AGGREGATE(r(X, Y)) ON X WITH COUNT(Y) AS N, AGGREGATE(r(X, Y)) ON X WITH COUNT(Y) AS Z", "L008"),
        ("AGGREGATE(r(X, Y)) ON X WITH COUNT(Y)", "L008"),
        ("AGGREGATE(r(X, Y)) ON X WITH COUNT(Y + 1) AS N", "L008"),
        ("AGGREGATE(r(X, Y)) ON X COUNT(Y) AS N", "L001"),
        ("AGGREGATE(r(X, Y)) ON X", "L001"),
        ("AGGREGATE r(X, Y) ON X WITH COUNT(Y) AS N", "L001"),
        ("not AGGREGATE(r(X, Y)) WITH COUNT(Y) AS N", "L012"),
    ],
)
def test_broken_aggregates(text: str, code: str) -> None:
    assert codes(f"p(X, N) :- {text} .") == [code]


# Queries and facts


@pytest.mark.parametrize("end", [" .", ".", "", " # asked by Ann"])
def test_the_full_stop_of_a_query_may_be_left_out(end: str) -> None:
    query = parse_query(f"?- hasNeighbour(<wt1>, X), not broken(X), X != <wt3>{end}")
    assert query.columns == (X,)
    assert len(query.body) == 3


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("?- p(Y, X), q(X, Z)", (Y, X, Z)),
        ("?- p(X, _, X)", (X,)),
        ("?- p(X, Y), not q(Y, Z)", (X, Y)),
        ("?- p(X), Y = X + 1", (X, Y)),
        ("?- p(X), X + 1 = Y", (X, Y)),
        ("?- p(X), BIND(X AS Y)", (X, Y)),
        ("?- BIND(X AS Y), p(X)", (X, Y)),
        ("?- Y := X, p(X)", (Y, X)),
        ("?- not q(Y, X), p(X, Y)", (Y, X)),
        ("?- not q(Z), p(X)", (X,)),
        ("?- X > Y, p(Y, X)", (X, Y)),
        ("?- p(X), X > Y", (X,)),
        ("?- AGGREGATE(q(X, Y)) ON Y, X WITH COUNT(Y) AS N", (X, Y, N)),
        ("?- p(a)", ()),
        ("?- not p(a)", ()),
        ("?- p(Z), AGGREGATE(q(X, Y)) ON X WITH COUNT(Y) AS N", (Z, X, N)),
        ("ans(Y, X) :- p(X, Y)", (Y, X)),
        ("ans(X, 5, a, X) :- p(X)", (X, integer(5), IRI("a"), X)),
        ("ans() :- p(X)", ()),
        ("ANYTHING(X) :- p(X)", (X,)),
        ("<http://e/a>(X) :- p(X)", (X,)),
        ("p(X, Y), not q(X, Z)", (X, Y)),
        ("p(_, Y), Y > 1", (Y,)),
        ("prefix(X, Y)", (X, Y)),
        ("PREFIX e: <http://e/> @prefix f: <http://f/> . e:p(X), f:p(Y)", (X, Y)),
    ],
)
def test_the_columns_of_a_query(text: str, columns: tuple[object, ...]) -> None:
    assert parse_query(text).columns == columns


@pytest.mark.parametrize(
    "text", ["", "?-", "p(X) q(X)", "?- p(X) . q(X)", "?- p(X) :- q(X)", "r1: ans(X) :- p(X)", "?- ."]
)
def test_what_is_no_query_is_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_query(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x WHERE { ?x a ex:T }",
        "PREFIX ex: <http://e/> select distinct ?x { ?x a ex:T }",
        "ASK { ?x a ex:T }",
        "describe $x",
    ],
)
def test_a_query_of_sparql_is_told_from_others(text: str) -> None:
    with pytest.raises(SyntaxProblem, match=r"L001: \w+ is SPARQL(.*\n)*.*`\?s ex:p \?o` is written"):
        parse_query(text)
    assert parse_query("select(X), ask(X)").body


def test_a_query_in_a_program_is_refused() -> None:
    assert codes("?- p(X) .") == ["L003"]


def test_a_fact_alone() -> None:
    assert parse_fact("p(a, 5)") == parse_fact("p(a, 5) .") == fact("p", IRI("a"), integer(5))
    assert parse_fact("Turbine(wt1)") == Fact(RDF_TYPE, (IRI("wt1"), IRI("Turbine")))


@pytest.mark.parametrize("text", ["p(X)", "p(_)", "p(?x)"])
def test_a_fact_holds_no_variables(text: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_fact(text)
    assert [d.code for d in caught.value.diagnostics] == ["L010"]
    assert codes(f"{text} .") == ["L010"]


def test_a_label_names_no_fact() -> None:
    assert codes("f1: p(a) .") == ["L005"]


@pytest.mark.parametrize("literal_class", ['"x"', "5", "true", '"x"@en'])
def test_a_class_is_no_literal(literal_class: str) -> None:
    assert codes(f"rdf:type(a, {literal_class}) .") == ["L014"]


def test_parse_rule_wants_one_rule() -> None:
    for text in ("", "p(a) .", "p(X) :- q(X) . p(X) :- r(X) .", "p(X) :- q(X) . q(a) ."):
        with pytest.raises(SyntaxProblem):
            parse_rule(text)


# Spans


def test_spans_point_at_what_they_name() -> None:
    text = "p(a) .\n  r1: q(X) :- p(X),\n    not s(X), X > abs(3),\n    AGGREGATE(t(Y)) WITH SUM(Y) AS N .\n"
    program = parse_program(text, "farm.rules")
    (rule,) = program.rules
    assert rule.span is not None
    assert repr(rule.span) == "farm.rules:2:3"
    assert rule.span.text.startswith("r1: q(X)")
    assert rule.span.text.endswith("AS N .")
    spans = [c.span.text if c.span else "" for c in rule.body]
    assert spans == ["p(X)", "s(X)", "X > abs(3)", "AGGREGATE(t(Y)) WITH SUM(Y) AS N"]
    assert program.facts[0].span is not None
    assert program.facts[0].span.text == "p(a)"


def test_spans_take_no_part_in_equality() -> None:
    assert parse_rule("p(X) :- q(X) .", "a") == parse_rule("\n\np(X)   :-   q(X)   .", "b")


# What to do


@pytest.mark.parametrize(
    ("text", "code", "note"),
    [
        ("p(X) :- q(X), X <> 5 .", "L009", "write !="),
        ("p(X) :- q(X), COMP(X, <>, 5) .", "L009", "write !="),
        ("p(X) :- q(X), X =< 5 .", "L009", "write <="),
        ("p(X) :- q(X), X => 5 .", "L009", "write >="),
        ("p(X) :- q(X), X == 5 .", "L009", "write ="),
        ("p(X) :- q(X), COMP(X, ==, 5) .", "L009", "write ="),
        ("p(X) :- q(X), X ≠ 5 .", "L001", "write !="),
        ("p(X) :- q('a') .", "L001", "double quotes"),
        ("p(X) :- q(X) ; r(X) .", "L001", "two rules"),
        ("p(X) :- q(X) | r(X) .", "L001", "two rules"),
        ("p(X) :- q($x) .", "L001", "?x"),
        ("p(X) <- q(X) .", "L001", "write :-"),
        ("p(X) := q(X) .", "L001", "write :-"),
        (":- q(X) .", "L001", "has a head"),
        ("p(X) :- q(X), not X = 5 .", "L012", "opposite comparison"),
        ("p(X) :- q(X), not abs(X) < 5 .", "L012", "opposite comparison"),
        ("p(X) :- q(X), !X + 1 = 5 .", "L012", "opposite comparison"),
        ("p(X) :- q(X), not COMP(X, =, 5) .", "L012", "opposite comparison"),
        ("p(X) :- q(X), not not r(X) .", "L012", "a rule of its own"),
        ('"a"(X) :- q(X) .', "L012", "without quotes"),
        ("5(X) :- q(X) .", "L012", "a predicate is a name"),
        ("?x(a) .", "L012", "a predicate is a name"),
        ("p(X) :- ?x(X) .", "L012", "a predicate is a name"),
        ("p(X) :- q(X), not ?x(X) .", "L012", "a predicate is a name"),
        ("Alarm :- q(X) .", "L012", "write Alarm()"),
        ("r1 : p(X) :- q(X) .", "L012", "`r1:`"),
        ("p(X) :- func:f(X) .", "L007", "?v := func:f(…)"),
        ("p(func:f) .", "L007", "in an expression"),
        ("PREFIX ex: <http://e/> .", "L001", "without a full stop"),
        ("p(X) :- q(X)\nr(X) :- s(X) .", "L001", "full stop"),
        ("p(a)\nq(b) .", "L001", "full stop"),
        ("p(X) :- q(X) r(X) .", "L001", "separated by `,`"),
        ("p(X) :- (q(X)) .", "L016", "neither in brackets"),
        ("p(X) :- q(X), not (r(X)) .", "L016", "neither in brackets"),
        ("p(X) :- q(X), predict(X) > 1 .", "L016", "func:predict(…)"),
        ("p(X) :- AGGREGATE(q(X)) ON WITH COUNT(X) AS N .", "L001", "ON ?g WITH"),
        ("p(X) :- AGGREGATE(q(X)) ON x WITH COUNT(X) AS N .", "L001", "ON ?g WITH"),
        ("p(X) :- AGGREGATE() WITH COUNT(X) AS N .", "L001", "AGGREGATE(body)"),
        ("p(N) :- AGGREGATE(q(X)) WITH COUNT(*) AS N .", "L001", "COUNT(?x) counts bindings"),
        ("p(X) :- q(X), X = 5x .", "L001", "does not start with a digit"),
        ("p(0x1F) .", "L001", "does not start with a digit"),
        ('p("a" @en) .', "L001", "follows its string directly"),
        ('p("a"@ en) .', "L001", "follows its string directly"),
        ('p("5" ^^xsd:integer) .', "L001", "follows its string directly"),
        ('p("5"^^integer) .', "L001", "xsd:integer"),
        ("p(X) :- q(X), COMP(X, 2) .", "L001", "COMP(e1, op, e2)"),
        ("p(X) :- q(X), BIND(X AS 2) .", "L001", "BIND(expression AS ?v)"),
        ("p(X) :- q(X, As) .", "L004", "?As"),
        ("p(<a b>) .", "L001", "holds no spaces"),
        ("p(X) :- q(X)) .", "L001", "no `(`"),
        ("Turbine(WT1) .", "L010", "<WT1>"),
        ("r1:p(X) :- q(X) .", "L018", "`r1: p`"),
    ],
)
def test_a_mistake_gets_advice(text: str, code: str, note: str) -> None:
    found = read_program(text)[1][0]
    assert found.code == code
    assert note in found.note


def test_a_string_at_the_wrong_place_is_not_taken_for_an_open_one() -> None:
    (found,) = read_program('p(a "b") .')[1]
    assert found.message == 'expected `)`, found `"b"`'


def test_the_white_space_of_labels_is_no_advice_inside_a_rule() -> None:
    (found,) = read_program("p(X) :- ex:q(X) .")[1]
    assert found.note == "declare it: @prefix ex: <…> ."


def test_the_marker_covers_a_foreign_operator() -> None:
    (found,) = read_program("p(X) :- q(X), X <> 5 .")[1]
    assert found.span is not None
    assert found.span.text == "<>"
