"""Expressions and terms from tokens, by recursive descent; and what every production needs of the scanner.

`name(args…)` may be a call or an atom: it stays an `Application` until its place says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, Source, Span, SyntaxProblem, nearest
from zodiacedge.language.ast import ANONYMOUS, Binary, Call, Expression, Now, Unary, Variable
from zodiacedge.language.mistakes import behind_an_argument, not_a_function, unexpected
from zodiacedge.language.scanner import Scanner, Token, unescape
from zodiacedge.language.vocabulary import (
    DEFAULT_PREFIXES,
    FUNCTION_PREFIX,
    FUNCTIONS,
    NOW,
    RESERVED,
    UNITS,
)
from zodiacedge.terms import (
    IRI,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Literal,
    boolean,
    duration,
    is_iri,
    literal,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Far more than in any real program, and safe for the recursive functions of all stages.
_MAX_DEPTH = 100
_LONGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class Application:
    """`name(args…)`, before it is known to be an atom or a call."""

    name: Token
    args: tuple[Expression, ...]
    span: Span


Operand = Expression | Application


class ExpressionParser:
    """Parses expressions: sum, product, minus, power, primary. An application alone may still be an atom."""

    def __init__(self, source: Source, prefixes: Mapping[str, str], scanner: Scanner | None = None) -> None:
        """Begin at the start of a text."""
        self._scanner = scanner or Scanner(source)
        self._prefixes = {**DEFAULT_PREFIXES, **prefixes}
        self._anonymous = 0
        self._depth = 0
        self._start = -1
        self._seen: dict[Variable, None] = {}

    def _value(self) -> Expression:
        return self._expression(self._sum())

    def _enter(self) -> None:
        # Callers restore the depth; a malformed statement resets it.
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._problem(
                "L020",
                f"more than {_MAX_DEPTH} levels of brackets or operators",
                "bind parts of it to variables first: ?v := expression",
                self._scanner.peek(operand=True),
            )

    def _sum(self) -> Operand:
        depth = self._depth
        left = self._product()
        while (token := self._scanner.peek(operand=False)).text in {"+", "-"}:
            self._enter()
            self._scanner.take(token)
            left = Binary(token.text, self._expression(left), self._expression(self._product()))
        self._depth = depth
        return left

    def _product(self) -> Operand:
        depth = self._depth
        left = self._minus()
        while (token := self._scanner.peek(operand=False)).text in {"*", "/", "%", "div"}:
            self._enter()
            self._scanner.take(token)
            left = Binary(token.text, self._expression(left), self._expression(self._minus()))
        self._depth = depth
        return left

    def _minus(self) -> Operand:
        if not self._sees("-", operand=True):
            return self._power()
        depth = self._depth
        self._enter()
        self._take(operand=True)
        negated = Unary(self._expression(self._minus()))
        self._depth = depth
        return negated

    def _power(self) -> Operand:
        token = self._scanner.peek(operand=True)
        base = self._primary()
        if not self._sees("**", operand=False):
            return base
        depth = self._depth
        self._enter()
        self._take(operand=False)
        exponent = self._expression(self._minus())
        self._depth = depth
        if token.kind == "number" and token.text[0] in "+-":
            # A power binds more tightly than the sign: -2 ** 2 is -(2 ** 2).
            power = Binary("**", _number(token.text[1:]), exponent)
            return Unary(power) if token.text[0] == "-" else power
        return Binary("**", self._expression(base), exponent)

    def _expression(self, operand: Operand) -> Expression:
        if not isinstance(operand, Application):
            return operand
        name = operand.name
        if name.kind == "prefixed" and name.text.startswith(FUNCTION_PREFIX + ":"):
            return Call(
                name.text[len(FUNCTION_PREFIX) + 1 :], operand.args, registered=True, span=operand.span
            )
        if name.kind == "name" and name.text.lower() in FUNCTIONS:
            return Call(name.text.lower(), operand.args, span=operand.span)
        raise SyntaxProblem(not_a_function(name.text, self._span(name)))

    def _primary(self) -> Operand:
        token = self._take(operand=True)
        match token.kind:
            case "number":
                return self._number_or_length(token)
            case "string":
                return self._string(token)
            case "variable":
                if token.text == "?_":
                    raise self._problem(
                        "L017", "?_ is not a variable", "write _ for a fresh one, or name it", token
                    )
                return self._register(Variable(token.text[1:]))
            case "blank":
                return BlankNode(token.text[2:])
            case "iri" | "prefixed" | "name":
                return self._named(token)
            case "sign" if token.text == "(":
                self._enter()
                inner = self._value()
                self._expect(")", "a bracket is closed by `)`")
                self._depth -= 1
                return inner
            case _:
                raise self._unexpected(token, "a term or a variable")

    def _named(self, token: Token) -> Operand:
        if self._sees("(", operand=False):
            self._take(operand=False)
            self._enter()
            args: list[Expression] = []
            if not self._sees(")", operand=True):
                args.append(self._value())
                while self._sees(",", operand=False):
                    self._take(operand=False)
                    args.append(self._value())
            self._expect(")", behind_an_argument(self._scanner.peek(operand=False)))
            self._depth -= 1
            return Application(token, tuple(args), self._scanner.span(token.start))
        if token.kind != "name":
            return self._iri(token)
        lowered = token.text.lower()
        if lowered in {"true", "false"}:
            return boolean(lowered == "true")
        if lowered in RESERVED:
            note = f"as a name write <{token.text}>"
            if token.text[0].isupper():
                note += f", as a variable ?{token.text}"
            raise self._problem("L004", f"{token.text} is a reserved word", note, token)
        if token.text == "_":
            self._anonymous += 1
            return Variable(f"{ANONYMOUS}{self._anonymous}")
        if token.text[0].isupper() or token.text[0] == "_":
            return self._register(Variable(token.text))
        return Now(self._span(token)) if token.text == NOW else IRI(token.text)

    def _number_or_length(self, token: Token) -> Literal:
        """Return a number, or a length of time where a unit follows."""
        unit = self._scanner.peek(operand=False)
        number = _number(token.text)
        if unit.kind != "name" or unit.text not in UNITS:
            return number
        self._scanner.take(unit)
        micros = Decimal(token.text) * UNITS[unit.text]
        length = duration(timedelta(microseconds=int(micros))) if abs(micros) < _LONGEST else None
        if micros != micros.to_integral_value() or length is None:
            note = "lengths are whole microseconds, of 64 bits"
            raise self._problem("L023", f"{token.text} {unit.text} is no length of time", note, token)
        return length

    def _register(self, variable: Variable) -> Variable:
        # In text order, which the tree does not always keep: BIND(X AS Y).
        self._seen.setdefault(variable)
        return variable

    def _string(self, token: Token) -> Literal:
        text = unescape(token.text[1:-1], self._span(token))
        if tag := self._scanner.language():
            return string(text, tag.text)
        if self._scanner.directly_at("^^"):
            start = self._scanner.position
            self._scanner.take(Token("sign", "^^", start, start + 2))
            datatype = self._take(operand=True)
            if datatype.kind not in {"iri", "prefixed"}:
                raise self._unexpected(datatype, "a datatype's IRI", "such as xsd:integer")
            return literal(text, self._iri(datatype).value)
        return string(text)

    def _variable(self, form: str) -> Variable:
        token = self._scanner.peek(operand=True)
        if token.kind == "variable" or (token.kind == "name" and token.text.lower() not in RESERVED):
            primary = self._primary()
            if isinstance(primary, Variable):
                return primary
        raise self._unexpected(token, "a variable", form)

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
        if base is not None:
            return IRI(base + local)
        if prefix == FUNCTION_PREFIX:
            note = f"call it in an expression: ?v := {token.text}(…)"
            raise self._problem("L007", "the prefix func: belongs to registered functions", note, token)
        near = nearest(prefix, tuple(self._prefixes))
        note = f"did you mean {near}:?" if near else f"declare it: @prefix {prefix}: <…> ."
        if token.start == self._start and prefix:
            note += f" (as a label it has white space behind its colon: `{prefix}: {local}`)"
        raise self._problem("L018", f"the prefix {prefix}: is not declared", note, token)

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

    def _starts_operand(self, expected: str, form: str = "") -> None:
        token = self._scanner.peek(operand=True)
        if token.kind in {"end", "bad"} or (token.kind == "sign" and token.text not in {"(", "-", "!", "¬"}):
            raise self._unexpected(token, expected, form)

    def _unexpected(self, token: Token, expected: str, form: str = "", code: str = "L001") -> SyntaxProblem:
        return SyntaxProblem(unexpected(self._scanner, token, expected, form, code))


def _number(text: str) -> Literal:
    if "e" in text or "E" in text:
        return literal(text, XSD_DOUBLE)
    return literal(text, XSD_DECIMAL if "." in text else XSD_INTEGER)
