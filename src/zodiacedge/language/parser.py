"""Text to syntax tree, by recursive descent along the grammar of `docs/grammar.md`.

Statements, bodies and conjuncts are here; expressions and terms are in `expression_parser`.

`read_program` returns the statements that parse together with every finding: a malformed statement is
skipped. `parse_program`, `parse_rule`, `parse_query` and `parse_fact` raise instead. Semantic checks are
left to `checks`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem
from zodiacedge.language.ast import (
    Aggregate,
    Argument,
    Atom,
    Binding,
    Comparison,
    Conjunct,
    Expression,
    Fact,
    Fold,
    Negation,
    Now,
    Program,
    Query,
    Rule,
    Variable,
    atom,
)
from zodiacedge.language.expression_parser import Application, ExpressionParser, Operand
from zodiacedge.language.mistakes import (
    AGGREGATE_FORM,
    BIND_FORM,
    COMP_FORM,
    FOLD_FORM,
    NEGATION_FORM,
    behind_a_conjunct,
    behind_a_head,
    label_without_colon,
    not_a_test,
    not_an_atom,
    not_an_operator,
    query_of_sparql,
)
from zodiacedge.language.printer import format_argument
from zodiacedge.language.safety import analyse
from zodiacedge.language.scanner import RecordingScanner, Scanner, Token
from zodiacedge.language.vocabulary import (
    AGGREGATES,
    CHOOSING,
    COMPARISONS,
    FUNCTION_PREFIX,
    KEEP_ABOUT_RELATION,
    KEEP_RELATION,
    KEEP_STATED_RELATION,
    LATEST,
    RESERVED,
    TIME_RELATION,
)
from zodiacedge.terms import (
    IRI,
    RDF_TYPE,
    XSD,
    XSD_DURATION,
    XSD_INTEGER,
    BlankNode,
    Literal,
    literal,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ARITHMETIC = ("+", "-", "*", "/", "%", "**")
_CONJUNCTIONS = frozenset({",", "&", "∧"})
_NEGATIONS = frozenset({"!", "¬"})
_NOT_NEGATED = frozenset({"not", "comp", "bind", "aggregate"})
# Far more than in any real program, and safe for the recursive functions of all stages.
_MAX_CONJUNCTS = 400
_MAX_POSITION = 100
_DURATIONS = frozenset({XSD_DURATION, XSD + "yearMonthDuration"})
KEEP_FORM = "`@keep reading 7 d .`, `@keep about Reading by time 1 d .`, `@keep status 1 h since stated .`"
TIME_FORM = "`@time reading 3 .` says which argument of reading is when it was so"


def read_program(
    text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None
) -> tuple[Program, list[Diagnostic]]:
    """Parse a program; return the statements that parse and every finding."""
    return _Parser(Source(name, text), prefixes or {}).program()


def read_tokens(text: str, name: str = "<text>") -> tuple[list[Token], list[Diagnostic]]:
    """Parse a program into its tokens, and return them with all diagnostics of the syntax."""
    source = Source(name, text)
    scanner = RecordingScanner(source)
    _, diagnostics = _Parser(source, {}, scanner).program()
    return scanner.tokens, diagnostics


def parse_program(text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None) -> Program:
    """Parse a program, or raise with every finding."""
    program, findings = read_program(text, name, prefixes)
    if findings:
        raise SyntaxProblem(findings)
    return program


def parse_rule(text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None) -> Rule:
    """Parse exactly one rule."""
    program = parse_program(text, name, prefixes)
    if len(program.rules) == 1 and not program.facts:
        return program.rules[0]
    raise SyntaxProblem(Diagnostic("L001", f"expected one rule: {text!r}"))


def parse_query(
    text: str,
    name: str = "<query>",
    prefixes: Mapping[str, str] | None = None,
    parameters: Iterable[Variable] = (),
) -> Query:
    """Parse a query: `?- body .`, a body alone, or `ans(X, Y) :- body .`; the last full stop is optional.

    Prefixes may be declared in front. Without a head, the columns are the `parameters` and the variables that
    the body binds.
    """
    return _Parser(Source(name, text), prefixes or {}).query(parameters)


def parse_fact(text: str, name: str = "<fact>", prefixes: Mapping[str, str] | None = None) -> Fact:
    """Parse one ground atom; the full stop is optional."""
    return ground(_Parser(Source(name, text), prefixes or {}).lone_atom())


def ground(candidate: Atom) -> Fact:
    """Return the fact of a ground atom; raise if the atom has a variable."""
    terms = tuple(arg for arg in candidate.args if not isinstance(arg, Variable))
    if len(terms) == len(candidate.args):
        return Fact(candidate.relation, terms)
    first = next(arg for arg in candidate.args if isinstance(arg, Variable))
    note = "`_` is a variable: write the constant that is meant"
    if not first.anonymous:
        note = f"{format_argument(first)} is a variable: as a constant write <{first.name}>"
    raise SyntaxProblem(Diagnostic("L010", "a fact holds no variables", note, candidate.span))


class _Parser(ExpressionParser):
    def __init__(self, source: Source, prefixes: Mapping[str, str], scanner: Scanner | None = None) -> None:
        super().__init__(source, prefixes, scanner)
        self._declared: dict[str, str] = {}
        self._findings: list[Diagnostic] = []

    # Statements

    def program(self) -> tuple[Program, list[Diagnostic]]:
        rules: list[Rule] = []
        facts: list[Atom] = []
        while self._scanner.peek(operand=True).kind != "end":
            start = self._scanner.position
            try:
                statement = self._statement()
            except SyntaxProblem as problem:
                self._findings.extend(problem.diagnostics)
                self._scanner.position = start
                self._scanner.skip_statement()
                continue
            if isinstance(statement, Rule):
                rules.append(statement)
            elif isinstance(statement, Atom):
                facts.append(statement)
        return Program(tuple(rules), tuple(facts), tuple(self._declared.items())), self._findings

    def query(self, parameters: Iterable[Variable]) -> Query:
        while self._prologue():
            pass
        if self._findings:
            raise SyntaxProblem(self._findings)
        start = self._scanner.skip_space()
        if foreign := query_of_sparql(self._scanner, start):
            raise SyntaxProblem(foreign)
        self._anonymous = 0
        head = None
        if self._sees("?-", operand=True):
            self._take(operand=True)
        else:
            head = self._query_head()
        body = self._body()
        self._finish()
        span = self._scanner.span(start)
        prefixes = tuple(self._declared.items())
        if head:
            columns = tuple(self._argument(arg, head.span) for arg in head.args)
            return Query(columns, body, span, self._as_atom(head), prefixes)
        bound = analyse(body, parameters).bound
        seen = tuple(v for v in self._seen if v in bound and not v.anonymous)
        return Query(seen, body, span, prefixes=prefixes)

    def _query_head(self) -> Application | None:
        """Take the head of a query and its `:-`, if they are next; the query may be a body alone."""
        start, seen, anonymous = self._scanner.position, dict(self._seen), self._anonymous
        try:
            head = self._application()
        except SyntaxProblem:
            head = None
        if head and self._sees(":-", operand=False):
            self._take(operand=False)
            return head
        self._scanner.position, self._seen, self._anonymous = start, seen, anonymous
        return None

    def lone_atom(self) -> Atom:
        parsed = self._atom()
        self._finish()
        return parsed

    def _finish(self) -> None:
        token = self._scanner.peek(operand=False)
        if token.text == "." and token.kind == "sign":
            self._scanner.take(token)
        token = self._scanner.peek(operand=True)
        if token.kind != "end":
            raise self._unexpected(token, "the end", behind_a_conjunct(self._scanner, token))

    def _prologue(self) -> bool:
        """Take a declaration of a prefix, if it is next."""
        self._start = start = self._scanner.skip_space()
        token = self._scanner.peek(operand=True)
        if token.text == "@":
            self._declaration()
            return True
        if token.kind != "name" or token.text.lower() != "prefix" or self._scanner.label():
            self._scanner.position = start
            return False
        self._scanner.take(token)
        if self._scanner.directly_at("("):
            self._scanner.position = start
            return False
        self._prefix_declaration()
        if self._sees(".", operand=True):
            note = "PREFIX ends without a full stop; @prefix ends with one"
            raise self._unexpected(self._take(operand=True), "a statement", note)
        return True

    def _statement(self) -> Rule | Atom | None:
        self._anonymous = self._depth = 0
        if declared := self._time_declaration():
            return declared
        if self._prologue():
            return None
        start = self._start
        token = self._scanner.peek(operand=True)
        if token.text == "?-":
            raise self._problem("L003", "a query does not belong in a program", "ask it with --query", token)
        label = self._scanner.label()
        if label and label.text.lower() in RESERVED:
            raise self._problem("L004", f"{label.text} is a reserved word", "choose another label", label)
        head = self._atom()
        token = self._scanner.peek(operand=False)
        if token.text == ".":
            self._scanner.take(token)
            ground(head)
            if label:
                raise self._problem("L005", "a label names a rule, not a fact", "leave the label out", label)
            return head
        self._expect(":-", behind_a_head(self._scanner, token))
        body = self._body()
        self._end_of_statement()
        name = label.text if label else ""
        return Rule(head, body, name, self._scanner.span(start))

    def _end_of_statement(self) -> None:
        token = self._scanner.peek(operand=False)
        if token.text != ".":
            if word := not_an_operator(self._scanner, token):
                raise SyntaxProblem(word)
            raise self._unexpected(token, "`,` or `.`", behind_a_conjunct(self._scanner, token))
        self._scanner.take(token)

    def _declaration(self) -> None:
        self._take(operand=True)
        token = self._take(operand=True)
        if token.text != "prefix":
            raise self._problem(
                "L006",
                f"@{token.text} is not a declaration",
                "write `@prefix name: <iri> .`, `@time p 3 .` or `@keep p 7 d .`; "
                "relative IRIs are kept as written",
                token,
            )
        self._prefix_declaration()
        if self._sees(".", operand=True):
            self._take(operand=True)
            return
        # Only the full stop is missing, so the declaration counts: later statements may use the prefix.
        span = self._scanner.span(self._start)
        note = f"write {' '.join(span.text.split())} ."
        self._findings.append(Diagnostic("L001", "an @prefix declaration ends with a full stop", note, span))

    def _time_declaration(self) -> Atom | None:
        """Take an `@time`, if it is next; it is a fact."""
        start = self._scanner.skip_space()
        if not self._sees("@", operand=True):
            return None
        self._take(operand=True)
        word = self._scanner.peek(operand=True)
        if word.text not in {"time", "keep"}:
            self._scanner.position = start
            return None
        self._scanner.take(word)
        if word.text == "keep":
            return self._keep_declaration(start)
        predicate = self._name(TIME_FORM)
        token = self._take(operand=True)
        if token.kind != "number" or not token.text.isdigit() or not 0 < int(token.text) <= _MAX_POSITION:
            raise self._unexpected(token, "the position of an argument, from 1", TIME_FORM, "L022")
        self._expect(".", TIME_FORM)
        return Atom(TIME_RELATION, (predicate, literal(token.text, XSD_INTEGER)), self._scanner.span(start))

    def _keep_declaration(self, start: int) -> Atom:
        word = self._scanner.peek(operand=True)
        about = word.kind == "name" and word.text == "about"
        if about:
            self._scanner.take(word)
            # A predicate may have this name.
            about = self._scanner.peek(operand=True).kind in {"iri", "prefixed", "name"}
            if not about:
                self._scanner.position = word.start
        relation, names = KEEP_RELATION, [self._name(KEEP_FORM)]
        if about:
            relation = KEEP_ABOUT_RELATION
            self._expect_word("by", KEEP_FORM, code="L022")
            names.append(self._name(KEEP_FORM))
        length = self._length(KEEP_FORM)
        if not about and self._sees_word("since"):
            self._take(operand=False)
            self._expect_word("stated", KEEP_FORM, code="L022")
            relation = KEEP_STATED_RELATION
        self._expect(".", KEEP_FORM)
        return Atom(relation, (*names, length), self._scanner.span(start))

    def _name(self, form: str) -> IRI:
        token = self._take(operand=True)
        if token.kind not in {"iri", "prefixed", "name"}:
            raise self._unexpected(token, "the name of a predicate", form, "L022")
        return self._iri(token)

    def _length(self, form: str) -> Literal:
        """Take a length of time of days to milliseconds that is not negative."""
        start = self._scanner.skip_space()
        self._starts_operand("a length of time", form)
        parsed = self._primary()
        value = value_of(parsed) if isinstance(parsed, Literal) else None
        if isinstance(parsed, Literal) and isinstance(value, timedelta) and value >= timedelta():
            return parsed
        note = "write `10 min`, with one of ms s min h d"
        if isinstance(parsed, Literal) and parsed.datatype in _DURATIONS:
            note = "months and years have no fixed length: write days, `30 d`, or an xsd:dayTimeDuration"
        raise SyntaxProblem(Diagnostic("L023", "expected a length of time", note, self._scanner.span(start)))

    def _within(self, parsed: Atom) -> Atom:
        """Return an atom with the `within length` behind it, if there is one."""
        if not self._sees_word("within"):
            return parsed
        self._take(operand=False)
        length = self._length("a window is `atom within 10 min`")
        span = Span(parsed.span.source, parsed.span.start, self._scanner.last_end) if parsed.span else None
        return replace(parsed, within=length, span=span)

    def _prefix_declaration(self) -> None:
        name = self._scanner.prefix_name()
        if name is None:
            raise self._unexpected(self._scanner.peek(operand=True), "a prefix such as `ex:`")
        value = self._take(operand=True)
        if value.kind != "iri":
            raise self._unexpected(value, "an IRI in angle brackets")
        prefix = name.text[:-1]
        if prefix == FUNCTION_PREFIX:
            raise self._problem(
                "L007", "the prefix func: belongs to registered functions", "choose another prefix", name
            )
        self._prefixes[prefix] = self._declared[prefix] = self._iri(value).value

    # Bodies

    def _body(self) -> tuple[Conjunct, ...]:
        conjuncts = [self._conjunct()]
        while self._take_conjunction():
            if isinstance(conjuncts[-1], Aggregate):
                raise self._problem(
                    "L008",
                    "the AGGREGATE stands last in a body",
                    "move the other atoms before it",
                    self._scanner.peek(operand=True),
                )
            conjuncts.append(self._conjunct())
            if len(conjuncts) > _MAX_CONJUNCTS:
                raise self._problem(
                    "L021",
                    f"a body of more than {_MAX_CONJUNCTS} conjuncts",
                    "split the rule, with a predicate for each part",
                    self._scanner.peek(operand=False),
                )
        return tuple(conjuncts)

    def _take_conjunction(self) -> bool:
        token = self._scanner.peek(operand=False)
        if token.text in _CONJUNCTIONS or (token.kind == "name" and token.text.lower() == "and"):
            self._scanner.take(token)
            return True
        return False

    def _conjunct(self) -> Conjunct:
        token = self._scanner.peek(operand=True)
        if token.text in _NEGATIONS:
            return self._negation()
        if token.kind == "name" and token.text.lower() in RESERVED:
            match token.text.lower():
                case "not":
                    return self._negation()
                case "comp":
                    return self._comp()
                case "bind":
                    return self._bind()
                case "aggregate":
                    return self._aggregate()
                case _:
                    pass
        return self._atom_or_test()

    def _negation(self) -> Negation:
        self._take(operand=True)
        token = self._scanner.peek(operand=True)
        if token.kind == "name" and token.text.lower() in _NOT_NEGATED:
            raise self._problem("L012", "`not` stands before an atom", NEGATION_FORM, token)
        operand = self._operand("an atom")
        if self._scanner.peek(operand=False).text in {*COMPARISONS, *_ARITHMETIC}:
            raise self._problem("L012", "`not` stands before an atom", NEGATION_FORM, token)
        return Negation(self._within(self._as_atom(self._applied(operand, token.start))))

    def _atom_or_test(self) -> Conjunct:
        start = self._scanner.skip_space()
        self._starts_operand("an atom or a comparison")
        left = self._sum()
        token = self._scanner.peek(operand=False)
        if token.text in COMPARISONS:
            self._scanner.take(token)
            right = self._value()
            return Comparison(self._expression(left), token.text, right, self._scanner.span(start))
        if token.text == ":=":
            if not isinstance(left, Variable):
                raise self._problem("L011", "`:=` binds a variable", "write ?v := expression", token)
            self._scanner.take(token)
            return Binding(left, self._value(), self._scanner.span(start))
        if word := None if isinstance(left, Application) else not_an_operator(self._scanner, token):
            raise SyntaxProblem(word)
        if isinstance(left, Application | IRI) or token.text == "(":
            return self._within(self._as_atom(self._applied(left, start)))
        if token.kind == "bad":
            raise self._unexpected(token, "a comparison")
        raise SyntaxProblem(not_a_test(self._scanner, token, self._scanner.span(start)))

    def _comp(self) -> Comparison:
        start = self._take(operand=True).start
        self._expect("(", COMP_FORM)
        left = self._value()
        self._expect(",", COMP_FORM)
        token = self._take(operand=False)
        if token.text not in COMPARISONS:
            raise self._unexpected(token, "one of = != < <= > >=", COMP_FORM)
        self._expect(",", COMP_FORM)
        right = self._value()
        self._expect(")", COMP_FORM)
        return Comparison(left, token.text, right, self._scanner.span(start))

    def _bind(self) -> Binding:
        start = self._take(operand=True).start
        self._expect("(", BIND_FORM)
        expression = self._value()
        self._expect_word("as", BIND_FORM)
        variable = self._variable(BIND_FORM)
        self._expect(")", BIND_FORM)
        return Binding(variable, expression, self._scanner.span(start))

    def _aggregate(self) -> Aggregate:
        form = AGGREGATE_FORM
        start = self._take(operand=True).start
        self._expect("(", form)
        self._starts_operand("a body", form)
        self._enter()
        body = self._body()
        self._depth -= 1
        self._expect(")", form)
        groups: list[Variable] = []
        if self._sees_word("on"):
            self._take(operand=False)
            groups.append(self._variable(form))
            while self._sees(",", operand=False):
                self._take(operand=False)
                groups.append(self._variable(form))
        self._expect_word("with", form)
        folds = [self._fold()]
        while self._sees(",", operand=False):
            self._take(operand=False)
            folds.append(self._fold())
        return Aggregate(body, tuple(groups), tuple(folds), self._scanner.span(start))

    def _fold(self) -> Fold:
        form = FOLD_FORM
        op = self._take(operand=True)
        if op.kind != "name" or op.text.lower() in RESERVED:
            raise self._unexpected(op, form, code="L008")
        self._expect("(", form, code="L008")
        word = self._scanner.peek(operand=True)
        distinct = False
        if word.kind == "name" and word.text.lower() == "distinct":
            self._scanner.take(word)
            distinct = not self._sees(")", operand=False)
            if not distinct:
                self._scanner.position = word.start
        if self._sees("*", operand=True):
            form = "name any variable of the body inside: COUNT(?x) counts bindings"
        name = op.text.upper()
        argument, by = self._variable(form), None
        if name in CHOOSING and not distinct:
            form = f"{name}(?v, ?t) is the ?v where ?t is {'greatest' if name == 'ARGMAX' else 'least'}"
            self._expect(",", form, code="L008")
            by = self._variable(form)
        self._expect(")", form, code="L008")
        self._expect_word("as", form, code="L008")
        target = self._variable(form)
        builtin = name in {*AGGREGATES, *CHOOSING, LATEST}
        if distinct and name in {*CHOOSING, LATEST}:
            raise self._problem("L008", f"{name} has no DISTINCT", f"{name} chooses one value", op)
        return Fold(
            name if builtin else op.text,
            argument,
            target,
            distinct,
            not builtin,
            self._scanner.span(op.start),
            by,
        )

    # Atoms

    def _atom(self) -> Atom:
        return self._as_atom(self._application())

    def _application(self) -> Application:
        start = self._scanner.skip_space()
        return self._applied(self._operand("an atom"), start)

    def _operand(self, expected: str) -> Operand:
        self._starts_operand(expected)
        return self._primary()

    def _applied(self, operand: Operand, start: int) -> Application:
        if isinstance(operand, Application):
            return operand
        if start == self._start and (label := label_without_colon(self._scanner, start)):
            raise SyntaxProblem(label)
        span = self._scanner.span(start)
        raise SyntaxProblem(not_an_atom(operand, span, self._scanner.peek(operand=False).text))

    def _as_atom(self, applied: Application) -> Atom:
        name = applied.name
        if name.kind == "name" and name.text.lower() in RESERVED:
            raise self._problem(
                "L004", f"{name.text} is a reserved word", f"as a predicate write <{name.text}>", name
            )
        predicate = self._iri(name).value
        args = tuple(self._argument(arg, applied.span) for arg in applied.args)
        if predicate == RDF_TYPE and len(args) == 2 and isinstance(args[1], Literal):
            raise self._problem(
                "L014", "a class is an IRI, not a literal", "write <name> or a prefixed name", name
            )
        return atom(predicate, args, applied.span)

    def _argument(self, arg: Expression, span: Span) -> Argument:
        if isinstance(arg, (Variable, IRI, BlankNode, Literal)):
            return arg
        if isinstance(arg, Now):
            note = "`now` stands in comparisons: T > now - 10 min; the name is <now>"
            raise SyntaxProblem(Diagnostic("L024", "`now` is no argument of an atom", note, arg.span or span))
        raise SyntaxProblem(
            Diagnostic(
                "L015",
                "an atom's arguments are terms and variables, not expressions",
                "bind the expression first: ?v := expression",
                span,
            )
        )
