"""Kernels of the comparison and binding steps of a rule.

If an expression has no value (a division by zero), a binding leaves its register unbound; steps that need the
register are skipped, and the emit step counts the error. `arithmetic` computes values.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.arithmetic import compare_values, evaluate_code, term_of
from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.jit import kernel
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put


@kernel
def has_no_value(steps: int, step: int, spec: int, registers: int) -> bool:
    """Whether an atom reads a register that has no value because of an error."""
    for column in range(get(steps, step + L.P_ARITY)):
        here = get(steps, step + L.P_SPEC) + column * L.SPEC_WORDS
        if get(spec, here) == L.MODE_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return True
    return False


@kernel
def code_has_value(spec: int, at: int, length: int, registers: int) -> bool:
    """Whether every register that an expression reads has a value."""
    for n in range(length):
        here = at + n * L.EXPRESSION_WORDS
        if get(spec, here) == L.X_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return False
    return True


@kernel
def compare_step(frame: int, step: int) -> int:
    """Evaluate a comparison; it holds where it reads a register without a value."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    registers = get(frame, L.F_REGISTERS)
    dictionary = get(frame, L.F_DICTIONARY)
    stack = get(frame, L.F_SCRATCH) + 8 * L.STACK
    at = get(steps, step + L.P_SPEC)
    left = get(steps, step + L.P_LEFT)
    right = get(steps, step + L.P_RIGHT)
    operator = get(steps, step + L.P_OPERATOR)
    right_at = at + left * L.EXPRESSION_WORDS
    if not code_has_value(spec, at, left + right, registers):
        return L.HOLDS
    if operator <= L.UNEQUAL and left == 1 and right == 1:
        first = get(spec, at + 1) if get(spec, at) == L.X_TERM else get(registers, get(spec, at + 1))
        second = (
            get(spec, right_at + 1)
            if get(spec, right_at) == L.X_TERM
            else get(registers, get(spec, right_at + 1))
        )
        if first == second:
            return L.HOLDS if operator == L.EQUAL else L.FAILS
    evaluate_code(frame, at, left, stack, 0)
    evaluate_code(frame, right_at, right, stack, 2)
    return compare_values(dictionary, stack, operator)


@kernel
def bind_step(frame: int, step: int) -> int:
    """Bind a register; where the expression has no value, leave it unbound and return `NO_ORDER`."""
    steps = get(frame, L.F_STEPS)
    spec = get(frame, L.F_SPEC)
    registers = get(frame, L.F_REGISTERS)
    stack = get(frame, L.F_SCRATCH) + 8 * L.STACK
    at = get(steps, step + L.P_SPEC)
    length = get(steps, step + L.P_LEFT)
    term = -1
    known = code_has_value(spec, at, length, registers)
    if known:
        evaluate_code(frame, at, length, stack, 0)
        if get(stack, 0) == L.IS_PENDING:
            return L.PENDING
        term = term_of(get(frame, L.F_DICTIONARY), stack, 0)
    register = get(steps, step + L.P_REGISTER)
    if not get(steps, step + L.P_CHECKS):
        put(registers, register, term)
    elif term >= 0 and get(registers, register) != term:
        return L.FAILS
    # An expression without a value because of an earlier error is not a further error.
    return L.HOLDS if term >= 0 or not known else L.NO_ORDER


@kernel
def note_error(frame: int, state: int) -> None:
    """Count a binding without a value, and keep the registers of a rule's first error."""
    errors = get(frame, L.F_ERRORS)
    registers = get(frame, L.F_REGISTERS)
    size = get(frame, L.F_ERROR_WORDS)
    at = get(state, L.M_RULE) * size
    count = get(state, L.M_PASS_ERRORS) + 1
    put(state, L.M_PASS_ERRORS, count)
    if get(errors, at) == 0 and count == 1:
        for n in range(size - 1):
            put(errors, at + 1 + n, get(registers, n))
