"""Expressions to postfix code, which `arithmetic` evaluates on a small stack.

What has an operation of its own there becomes one; every other function is called on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.embedded.expressions.host_functions import host_function
from zodiacedge.engine.embedded.kernels.layout import (
    X_ABS,
    X_ADD,
    X_CEIL,
    X_DIVIDE,
    X_EXP,
    X_FLOOR,
    X_FLOOR_DIVIDE,
    X_HOST,
    X_LN,
    X_LOG10,
    X_MAX,
    X_MIN,
    X_MULTIPLY,
    X_NEGATE,
    X_POWER,
    X_REGISTER,
    X_REMAINDER,
    X_ROUND,
    X_SQRT,
    X_SUBTRACT,
    X_TERM,
)
from zodiacedge.language.ast import Binary, Call, Expression, Unary, Variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zodiacedge.engine.embedded.expressions.host_functions import HostFunction
    from zodiacedge.engine.embedded.storage.database import TermSpace
    from zodiacedge.engine.registry import Registry

_OPERATORS = {
    "+": X_ADD,
    "-": X_SUBTRACT,
    "*": X_MULTIPLY,
    "/": X_DIVIDE,
    "div": X_FLOOR_DIVIDE,
    "%": X_REMAINDER,
    "**": X_POWER,
}
_FUNCTIONS = {
    "abs": X_ABS,
    "round": X_ROUND,
    "floor": X_FLOOR,
    "ceil": X_CEIL,
    "sqrt": X_SQRT,
    "exp": X_EXP,
    "ln": X_LN,
    "log10": X_LOG10,
    "min": X_MIN,
    "max": X_MAX,
}


class ExpressionCode:
    """Writes the code of expressions, and collects the functions of the host that it calls."""

    def __init__(self, terms: TermSpace, registry: Registry) -> None:
        """Start with none."""
        self._terms = terms
        self._registry = registry
        self.hosts: list[HostFunction] = []

    def of(self, expression: Expression, registers: Mapping[Variable, int]) -> list[int]:
        """Return the words of an expression: operations with an operand each."""
        match expression:
            case Variable():
                return [X_REGISTER, registers[expression]]
            case Unary(operand=operand):
                return [*self.of(operand, registers), X_NEGATE, 0]
            case Binary(operator=operator, left=left, right=right):
                return [*self.of(left, registers), *self.of(right, registers), _OPERATORS[operator], 0]
            case Call(function=function, args=args, registered=registered):
                if not registered and function in _FUNCTIONS:
                    return self._operation(function, args, registers)
                given = [word for arg in args for word in self.of(arg, registers)]
                return [*given, X_HOST, self._host(function, len(args), registered=registered)]
            case _:
                return [X_TERM, self._terms.constant(expression)]

    def _operation(
        self, function: str, args: Sequence[Expression], registers: Mapping[Variable, int]
    ) -> list[int]:
        found = self.of(args[0], registers)
        if function not in {"min", "max"}:
            return [*found, _FUNCTIONS[function], 0]
        if len(args) == 1:
            # One argument is its own least and greatest, as a number: minus minus it.
            return [*found, X_NEGATE, 0, X_NEGATE, 0]
        for arg in args[1:]:
            found += [*self.of(arg, registers), _FUNCTIONS[function], 0]
        return found

    def _host(self, function: str, arity: int, *, registered: bool) -> int:
        host = host_function(self._terms, function, arity, self._registry, registered=registered)
        if host not in self.hosts:
            self.hosts.append(host)
        return self.hosts.index(host)
