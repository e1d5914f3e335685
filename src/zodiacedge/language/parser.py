"""Text to syntax tree, by recursive descent along the grammar of `docs/grammar.md`.

`read_program` reads a whole text and returns what it could read together with every finding; a
broken statement costs that statement only. `parse_program`, `parse_rule`, `parse_query` and
`parse_fact` raise instead. Whether a program that parses makes sense is left to `checks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem, nearest
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
    Program,
    Query,
    Rule,
    Unary,
    Variable,
    atom,
    variables,
)
from zodiacedge.language.scanner import Scanner, Token, unescape
from zodiacedge.language.vocabulary import (
    AGGREGATES,
    COMPARISONS,
    DEFAULT_PREFIXES,
    FUNCTION_PREFIX,
    FUNCTIONS,
    RESERVED,
)
from zodiacedge.terms import (
    IRI,
    RDF_TYPE,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Literal,
    boolean,
    is_iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONJUNCTIONS = frozenset({",", "&", "∧"})
_NEGATIONS = frozenset({"!", "¬"})
# Far beyond what people write, and well within what every stage can walk by recursion.
_MOST_CONJUNCTS = 400
_DEEPEST = 100


def read_program(
    text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None
) -> tuple[Program, list[Diagnostic]]:
    """Read a program; return what could be read and every finding."""
    return _Parser(Source(name, text), prefixes or {}).program()


def parse_program(text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None) -> Program:
    """Read a program, or raise with every finding."""
    program, found = read_program(text, name, prefixes)
    if found:
        raise SyntaxProblem(found)
    return program


def parse_rule(text: str, name: str = "<text>", prefixes: Mapping[str, str] | None = None) -> Rule:
    """Read exactly one rule."""
    program = parse_program(text, name, prefixes)
    if len(program.rules) == 1 and not program.facts:
        return program.rules[0]
    raise SyntaxProblem(Diagnostic("L001", f"expected one rule: {text!r}"))


def parse_query(text: str, name: str = "<query>", prefixes: Mapping[str, str] | None = None) -> Query:
    """Read a query: `?- body .` or `ans(X, Y) :- body .`; the last full stop may be left out."""
    return _Parser(Source(name, text), prefixes or {}).query()


def parse_fact(text: str, name: str = "<fact>", prefixes: Mapping[str, str] | None = None) -> Fact:
    """Read one ground atom; the full stop may be left out."""
    found = _Parser(Source(name, text), prefixes or {}).lone_atom()
    return ground(found)


def ground(found: Atom) -> Fact:
    """Return the fact of a ground atom, or raise where a variable stands in it."""
    terms = tuple(arg for arg in found.args if not isinstance(arg, Variable))
    if len(terms) == len(found.args):
        return Fact(found.relation, terms)
    raise SyntaxProblem(
        Diagnostic(
            "L010",
            "a fact holds no variables",
            "a name that starts with an upper-case letter is a variable: write a constant as <Name>",
            found.span,
        )
    )


@dataclass(frozen=True, slots=True)
class _Application:
    # name(args…) before it is known whether it is an atom or a call.
    name: Token
    args: tuple[Expression, ...]
    span: Span


_Operand = Expression | _Application


class _Parser:
    def __init__(self, source: Source, prefixes: Mapping[str, str]) -> None:
        self._scanner = Scanner(source)
        self._prefixes = {**DEFAULT_PREFIXES, **prefixes}
        self._declared: dict[str, str] = {}
        self._anonymous = 0
        self._depth = 0

    # Statements

    def program(self) -> tuple[Program, list[Diagnostic]]:
        rules: list[Rule] = []
        facts: list[Atom] = []
        found: list[Diagnostic] = []
        while self._scanner.peek(operand=True).kind != "end":
            start = self._scanner.position
            try:
                statement = self._statement()
            except SyntaxProblem as problem:
                found.extend(problem.diagnostics)
                self._scanner.position = start
                self._scanner.to_statement_end()
                continue
            if isinstance(statement, Rule):
                rules.append(statement)
            elif isinstance(statement, Atom):
                facts.append(statement)
        return Program(tuple(rules), tuple(facts), tuple(self._declared.items())), found

    def query(self) -> Query:
        start = self._scanner.skip_space()
        self._anonymous = 0
        if self._sees("?-", operand=True):
            self._take(operand=True)
            body = self._body()
            columns: tuple[Argument, ...] = _visible_columns(body)
        else:
            applied = self._application()
            columns = tuple(self._argument(arg, applied.span) for arg in applied.args)
            self._expect(":-", "a query is `?- body .` or `head :- body .`")
            body = self._body()
        self._finish()
        return Query(columns, body, self._scanner.span(start))

    def lone_atom(self) -> Atom:
        found = self._atom()
        self._finish()
        return found

    def _finish(self) -> None:
        token = self._scanner.peek(operand=False)
        if token.text == "." and token.kind == "sign":
            self._scanner.take(token)
        token = self._scanner.peek(operand=True)
        if token.kind != "end":
            raise self._unexpected(token, "the end")

    def _statement(self) -> Rule | Atom | None:
        start = self._scanner.skip_space()
        self._anonymous = self._depth = 0
        token = self._scanner.peek(operand=True)
        if token.text == "@":
            self._at_declaration()
            return None
        if token.text == "?-":
            raise self._problem("L003", "a query does not belong in a program", "ask it with --query", token)
        label = self._scanner.label()
        if label is None and token.kind == "name" and token.text.lower() == "prefix":
            self._scanner.take(token)
            if not self._scanner.directly_at("("):
                self._prefix_declaration()
                return None
            self._scanner.position = start
        if label and label.text.lower() in RESERVED:
            raise self._problem("L004", f"{label.text} is a reserved word", "choose another label", label)
        head = self._atom()
        token = self._scanner.peek(operand=False)
        if token.text == ".":
            self._scanner.take(token)
            if label:
                raise self._problem("L005", "a label names a rule, not a fact", "leave the label out", label)
            ground(head)
            return head
        self._expect(":-", "a rule is `head :- body .`, a fact is `head .`")
        body = self._body()
        self._end_of_statement()
        name = label.text if label else ""
        return Rule(head, body, name, self._scanner.span(start))

    def _end_of_statement(self) -> None:
        token = self._scanner.peek(operand=False)
        if token.text != ".":
            raise self._unexpected(token, "`,` or `.`")
        self._scanner.take(token)

    def _at_declaration(self) -> None:
        self._take(operand=True)
        token = self._take(operand=True)
        if token.text != "prefix":
            raise self._problem(
                "L006",
                f"@{token.text} is not a declaration",
                "only `@prefix name: <iri> .` is; relative IRIs are kept as written",
                token,
            )
        self._prefix_declaration()
        self._end_of_statement()

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
                "L007", "the prefix func: belongs to registered functions", "choose another", name
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
            if len(conjuncts) > _MOST_CONJUNCTS:
                raise self._problem(
                    "L021",
                    f"a body of more than {_MOST_CONJUNCTS} conjuncts",
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
            self._scanner.take(token)
            return Negation(self._atom())
        if token.kind == "name" and token.text.lower() in RESERVED:
            match token.text.lower():
                case "not":
                    self._scanner.take(token)
                    return Negation(self._atom())
                case "comp":
                    return self._comp()
                case "bind":
                    return self._bind()
                case "aggregate":
                    return self._aggregate()
                case _:
                    pass
        return self._atom_or_test()

    def _atom_or_test(self) -> Conjunct:
        start = self._scanner.skip_space()
        left = self._sum()
        token = self._scanner.peek(operand=False)
        if token.text in COMPARISONS:
            self._scanner.take(token)
            if token.text == "=" and self._scanner.directly_at("="):
                raise self._problem("L009", "== is not an operator", "write =", token)
            right = self._value()
            return Comparison(self._expression(left), token.text, right, self._scanner.span(start))
        if token.text == ":=":
            if not isinstance(left, Variable):
                raise self._problem("L011", "`:=` binds a variable", "write ?v := expression", token)
            self._scanner.take(token)
            return Binding(left, self._value(), self._scanner.span(start))
        if isinstance(left, _Application):
            return self._as_atom(left)
        span = self._scanner.span(start)
        if isinstance(left, IRI):
            shown = span.text
            raise SyntaxProblem(
                Diagnostic("L012", f"{shown} alone is not an atom", f"write {shown}() for arity 0", span)
            )
        raise SyntaxProblem(
            Diagnostic("L013", "an expression alone is not a test", "compare it: e1 op e2", span)
        )

    def _comp(self) -> Comparison:
        start = self._take(operand=True).start
        self._expect("(", "a comparison is COMP(e1, op, e2)")
        left = self._value()
        self._expect(",", "a comparison is COMP(e1, op, e2)")
        token = self._take(operand=False)
        if token.text not in COMPARISONS:
            raise self._unexpected(token, "one of = != < <= > >=")
        self._expect(",", "a comparison is COMP(e1, op, e2)")
        right = self._value()
        self._expect(")", "a comparison is COMP(e1, op, e2)")
        return Comparison(left, token.text, right, self._scanner.span(start))

    def _bind(self) -> Binding:
        start = self._take(operand=True).start
        self._expect("(", "a binding is BIND(expression AS ?v)")
        expression = self._value()
        self._expect_word("as", "a binding is BIND(expression AS ?v)")
        variable = self._variable()
        self._expect(")", "a binding is BIND(expression AS ?v)")
        return Binding(variable, expression, self._scanner.span(start))

    def _aggregate(self) -> Aggregate:
        form = "an aggregate is AGGREGATE(body) ON ?g WITH op(?x) AS ?v"
        start = self._take(operand=True).start
        self._expect("(", form)
        self._deeper()
        body = self._body()
        self._depth -= 1
        self._expect(")", form)
        groups: list[Variable] = []
        if self._sees_word("on"):
            self._take(operand=False)
            groups.append(self._variable())
            while self._sees(",", operand=False):
                self._take(operand=False)
                groups.append(self._variable())
        self._expect_word("with", form)
        folds = [self._fold()]
        while self._sees(",", operand=False):
            self._take(operand=False)
            folds.append(self._fold())
        return Aggregate(body, tuple(groups), tuple(folds), self._scanner.span(start))

    def _fold(self) -> Fold:
        form = "a result is op(?x) AS ?v, and the AGGREGATE stands last in a body"
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
        argument = self._variable()
        self._expect(")", form, code="L008")
        self._expect_word("as", form, code="L008")
        target = self._variable()
        builtin = op.text.upper() in AGGREGATES
        return Fold(
            op.text.upper() if builtin else op.text,
            argument,
            target,
            distinct,
            not builtin,
            self._scanner.span(op.start),
        )

    # Atoms

    def _atom(self) -> Atom:
        return self._as_atom(self._application())

    def _application(self) -> _Application:
        start = self._scanner.skip_space()
        found = self._primary()
        if isinstance(found, _Application):
            return found
        span = self._scanner.span(start)
        shown = span.text
        raise SyntaxProblem(
            Diagnostic(
                "L012",
                f"{shown} alone is not an atom",
                f"an atom is predicate(arguments); write {shown}() for arity 0",
                span,
            )
        )

    def _as_atom(self, applied: _Application) -> Atom:
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
        raise SyntaxProblem(
            Diagnostic(
                "L015",
                "an atom's arguments are terms and variables, not expressions",
                "bind the expression first: ?v := expression",
                span,
            )
        )

    # Expressions: sum, product, minus, power, primary. What stands alone may still be an atom.

    def _value(self) -> Expression:
        return self._expression(self._sum())

    def _deeper(self) -> None:
        # Callers put the depth back when they are done; a broken statement starts anew.
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._problem(
                "L020",
                f"more than {_DEEPEST} levels of brackets or operators",
                "bind parts of it to variables first: ?v := expression",
                self._scanner.peek(operand=True),
            )

    def _sum(self) -> _Operand:
        depth = self._depth
        left = self._product()
        while (token := self._scanner.peek(operand=False)).text in {"+", "-"}:
            self._deeper()
            self._scanner.take(token)
            left = Binary(token.text, self._expression(left), self._expression(self._product()))
        self._depth = depth
        return left

    def _product(self) -> _Operand:
        depth = self._depth
        left = self._minus()
        while (token := self._scanner.peek(operand=False)).text in {"*", "/", "%", "div"}:
            self._deeper()
            self._scanner.take(token)
            left = Binary(token.text, self._expression(left), self._expression(self._minus()))
        self._depth = depth
        return left

    def _minus(self) -> _Operand:
        if not self._sees("-", operand=True):
            return self._power()
        depth = self._depth
        self._deeper()
        self._take(operand=True)
        negated = Unary(self._expression(self._minus()))
        self._depth = depth
        return negated

    def _power(self) -> _Operand:
        token = self._scanner.peek(operand=True)
        base = self._primary()
        if not self._sees("**", operand=False):
            return base
        depth = self._depth
        self._deeper()
        self._take(operand=False)
        exponent = self._expression(self._minus())
        self._depth = depth
        if token.kind == "number" and token.text[0] in "+-":
            # As everywhere, a power binds before the sign: -2 ** 2 is -(2 ** 2).
            power = Binary("**", _number(token.text[1:]), exponent)
            return Unary(power) if token.text[0] == "-" else power
        return Binary("**", self._expression(base), exponent)

    def _expression(self, found: _Operand) -> Expression:
        if not isinstance(found, _Application):
            return found
        name = found.name
        if name.kind == "prefixed" and name.text.startswith(FUNCTION_PREFIX + ":"):
            return Call(name.text[len(FUNCTION_PREFIX) + 1 :], found.args, registered=True, span=found.span)
        if name.kind == "name" and name.text.lower() in FUNCTIONS:
            return Call(name.text.lower(), found.args, span=found.span)
        near = nearest(name.text.lower(), tuple(FUNCTIONS))
        raise self._problem(
            "L016",
            f"{name.text} is not a function",
            f"did you mean {near}?" if near else "a function that the host registered is func:name(…)",
            name,
        )

    def _primary(self) -> _Operand:
        token = self._take(operand=True)
        match token.kind:
            case "number":
                return _number(token.text)
            case "string":
                return self._string(token)
            case "variable":
                if token.text == "?_":
                    raise self._problem(
                        "L017", "?_ is not a variable", "write _ for a fresh one, or name it", token
                    )
                return Variable(token.text[1:])
            case "blank":
                return BlankNode(token.text[2:])
            case "iri" | "prefixed" | "name":
                return self._named(token)
            case "sign" if token.text == "(":
                self._deeper()
                inner = self._value()
                self._expect(")", "a bracket is closed by `)`")
                self._depth -= 1
                return inner
            case _:
                raise self._unexpected(token, "a term, a variable or an atom")

    def _named(self, token: Token) -> _Operand:
        if self._sees("(", operand=False):
            self._take(operand=False)
            self._deeper()
            args: list[Expression] = []
            if not self._sees(")", operand=True):
                args.append(self._value())
                while self._sees(",", operand=False):
                    self._take(operand=False)
                    args.append(self._value())
            self._expect(")", "arguments are separated by `,` and closed by `)`")
            self._depth -= 1
            return _Application(token, tuple(args), self._scanner.span(token.start))
        if token.kind != "name":
            return self._iri(token)
        lowered = token.text.lower()
        if lowered in {"true", "false"}:
            return boolean(lowered == "true")
        if lowered in RESERVED:
            raise self._problem(
                "L004", f"{token.text} is a reserved word", f"as a name write <{token.text}>", token
            )
        if token.text == "_":
            self._anonymous += 1
            return Variable(f"{ANONYMOUS}{self._anonymous}")
        if token.text[0].isupper() or token.text[0] == "_":
            return Variable(token.text)
        return IRI(token.text)

    def _string(self, token: Token) -> Literal:
        text = unescape(token.text[1:-1], self._span(token))
        if tag := self._scanner.language():
            return string(text, tag.text)
        if self._scanner.directly_at("^^"):
            self._scanner.position += 2
            datatype = self._take(operand=True)
            if datatype.kind not in {"iri", "prefixed"}:
                raise self._unexpected(datatype, "a datatype's IRI")
            return literal(text, self._iri(datatype).value)
        return string(text)

    def _variable(self) -> Variable:
        token = self._scanner.peek(operand=True)
        found = self._primary()
        if isinstance(found, Variable):
            return found
        raise self._unexpected(token, "a variable")

    def _iri(self, token: Token) -> IRI:
        if token.kind == "iri":
            name = IRI(unescape(token.text[1:-1], self._span(token)))
            if "\\" in token.text and not is_iri(name.value):
                raise self._problem("L002", "an IRI cannot hold this character", "percent-encode it", token)
            return name
        if token.kind == "name":
            return IRI(token.text)
        if token.kind != "prefixed":
            raise self._unexpected(token, "a name or an IRI")
        prefix, local = token.text.split(":", 1)
        base = self._prefixes.get(prefix)
        if base is None:
            near = nearest(prefix, tuple(self._prefixes))
            hint = f"did you mean {near}:?" if near else f"declare it: @prefix {prefix}: <…> ."
            raise self._problem(
                "L018",
                f"the prefix {prefix}: is not declared",
                f"{hint} (a label has white space after its colon)",
                token,
            )
        return IRI(base + local)

    # Tokens

    def _take(self, *, operand: bool) -> Token:
        return self._scanner.take(self._scanner.peek(operand=operand))

    def _sees(self, text: str, *, operand: bool) -> bool:
        return self._scanner.peek(operand=operand).text == text

    def _sees_word(self, word: str) -> bool:
        token = self._scanner.peek(operand=False)
        return token.kind == "name" and token.text.lower() == word

    def _expect(self, text: str, form: str, code: str = "L001") -> Token:
        token = self._scanner.peek(operand=False)
        if token.text != text or token.kind != "sign":
            raise self._unexpected(token, f"`{text}`", form, code)
        return self._scanner.take(token)

    def _expect_word(self, word: str, form: str, code: str = "L001") -> None:
        token = self._take(operand=False)
        if token.kind != "name" or token.text.lower() != word:
            raise self._unexpected(token, f"`{word.upper()}`", form, code)

    def _span(self, token: Token) -> Span:
        return Span(self._scanner.source, token.start, max(token.end, token.start + 1))

    def _problem(self, code: str, message: str, note: str, token: Token) -> SyntaxProblem:
        return SyntaxProblem(Diagnostic(code, message, note, self._span(token)))

    def _unexpected(self, token: Token, expected: str, form: str = "", code: str = "L001") -> SyntaxProblem:
        if token.kind == "bad" and token.text == '"':
            return self._problem(
                "L019", "a string that does not end", 'close it with " on the same line', token
            )
        shown = token.text if token.kind == "end" else f"`{token.text}`"
        return self._problem(code, f"expected {expected}, found {shown}", form, token)


def _number(text: str) -> Literal:
    if "e" in text or "E" in text:
        return literal(text, XSD_DOUBLE)
    return literal(text, XSD_DECIMAL if "." in text else XSD_INTEGER)


def _visible_columns(body: tuple[Conjunct, ...]) -> tuple[Variable, ...]:
    # The named variables that the body binds, as they first appear; existential ones are not answers.
    seen: dict[Variable, None] = {}
    for conjunct in body:
        if isinstance(conjunct, Negation):
            continue
        if isinstance(conjunct, Aggregate):
            seen |= dict.fromkeys((*conjunct.groups, *(fold.target for fold in conjunct.folds)))
        else:
            seen |= dict.fromkeys(variables(conjunct))
    return tuple(v for v in seen if not v.anonymous)
