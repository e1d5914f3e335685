"""Compilation of expressions to postfix code, which `arithmetic` evaluates on a stack.

Functions without an opcode are host functions. `if` and `coalesce` jump over the arguments that they do not
evaluate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.expressions.host_functions import host_function
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.storage.relation import too_wide
from zodiacedge.language.ast import Binary, Call, Expression, Now, Unary, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.engine.embedded.expressions.host_functions import HostFunction
    from zodiacedge.engine.embedded.terms.term_space import TermSpace
    from zodiacedge.engine.registry import Registry

_OPERATORS = {
    "+": L.X_ADD,
    "-": L.X_SUBTRACT,
    "*": L.X_MULTIPLY,
    "/": L.X_DIVIDE,
    "div": L.X_FLOOR_DIVIDE,
    "%": L.X_REMAINDER,
    "**": L.X_POWER,
}
_FUNCTIONS = {
    "abs": L.X_ABS,
    "round": L.X_ROUND,
    "floor": L.X_FLOOR,
    "ceil": L.X_CEIL,
    "sqrt": L.X_SQRT,
    "exp": L.X_EXP,
    "ln": L.X_LN,
    "log10": L.X_LOG10,
    "min": L.X_MIN,
    "max": L.X_MAX,
}
_WITH_CODE = frozenset({*_FUNCTIONS, "if", "coalesce"})
# Both sides of a comparison, and the result of a binding, fit in the room that the machine reserves.
_MOST_COMPUTED = L.SPARE_TERMS // 2 - 1


class ExpressionCode:
    """A compiler of expressions that collects the host functions they call."""

    def __init__(self, terms: TermSpace, registry: Registry) -> None:
        """Start with no host functions."""
        self._terms = terms
        self._registry = registry
        self.hosts: list[HostFunction] = []

    def code(self, expression: Expression, registers: Mapping[Variable, int]) -> list[int]:
        """Return the code of a whole expression, if the numbers it computes fit in the dictionary."""
        computed = _computed_arguments(expression)
        if computed > _MOST_COMPUTED:
            raise too_wide("an expression of functions on computed numbers", computed, _MOST_COMPUTED)
        return self.of(expression, registers)

    def of(self, expression: Expression, registers: Mapping[Variable, int]) -> list[int]:
        """Return the code of an expression: opcodes with an operand each."""
        match expression:
            case Variable():
                return [L.X_REGISTER, registers[expression]]
            case Unary(operand=operand):
                return [*self.of(operand, registers), L.X_NEGATE, 0]
            case Binary(operator=operator, left=left, right=right):
                return [*self.of(left, registers), *self.of(right, registers), _OPERATORS[operator], 0]
            case Call(function=function, args=args, registered=registered):
                if not registered and function in _FUNCTIONS:
                    return self._operation(function, args, registers)
                if not registered and function == "if":
                    return self._choice(args, registers)
                if not registered and function == "coalesce":
                    return self._first_value(args, registers)
                code = [word for arg in args for word in self.of(arg, registers)]
                return [*code, L.X_HOST, self._host(function, len(args), registered=registered)]
            case Now():
                raise TypeError(expression)
            case _:
                return [L.X_TERM, self._terms.constant(expression)]

    def _operation(
        self, function: str, args: Sequence[Expression], registers: Mapping[Variable, int]
    ) -> list[int]:
        code = self.of(args[0], registers)
        if function not in {"min", "max"}:
            return [*code, _FUNCTIONS[function], 0]
        if len(args) == 1:
            # The result is the argument as a number: negated twice.
            return [*code, L.X_NEGATE, 0, L.X_NEGATE, 0]
        for arg in args[1:]:
            code += [*self.of(arg, registers), _FUNCTIONS[function], 0]
        return code

    def _choice(self, args: Sequence[Expression], registers: Mapping[Variable, int]) -> list[int]:
        condition, chosen, other = (self.of(arg, registers) for arg in args)
        return [*condition, L.X_UNLESS, _size(chosen) + 1, *chosen, L.X_JUMP, _size(other), *other]

    def _first_value(self, args: Sequence[Expression], registers: Mapping[Variable, int]) -> list[int]:
        *others, code = (self.of(arg, registers) for arg in args)
        for other in reversed(others):
            code = [*other, L.X_COALESCE, _size(code), *code]
        return code

    def _host(self, function: str, arity: int, *, registered: bool) -> int:
        host = host_function(self._terms, function, arity, self._registry, registered=registered)
        if host not in self.hosts:
            self.hosts.append(host)
        return self.hosts.index(host)


def _computed_arguments(expression: Expression) -> int:
    """Return how many arguments of host functions may be numbers that are not yet in the dictionary."""
    match expression:
        case Unary(operand=operand):
            return _computed_arguments(operand)
        case Binary(left=left, right=right):
            return _computed_arguments(left) + _computed_arguments(right)
        case Call(function=function, args=args, registered=registered):
            is_host = registered or function not in _WITH_CODE
            return sum(_computed_arguments(arg) + (is_host and _is_computed(arg)) for arg in args)
        case _:
            return 0


def _is_computed(arg: Expression) -> bool:
    if isinstance(arg, Call):
        return not arg.registered and arg.function in _WITH_CODE
    return isinstance(arg, Unary | Binary)


def _size(code: Sequence[int]) -> int:
    return len(code) // L.EXPRESSION_WORDS
