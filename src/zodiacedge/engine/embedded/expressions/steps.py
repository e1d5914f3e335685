"""The steps of a rule that evaluate expressions, comparisons and bindings, and what has no value there.

Where an expression has no value (a division by zero), a binding leaves its register without one; steps that
would need it are passed over, and in the end the error is counted. Values themselves are `arithmetic`.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.expressions.arithmetic import compare_values, evaluate_code, term_of
from zodiacedge.engine.embedded.kernels.jit import kernel
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.kernels.layout import (
    EQUAL,
    EXPRESSION_WORDS,
    F_DICTIONARY,
    F_ERROR_WORDS,
    F_ERRORS,
    F_REGISTERS,
    F_SCRATCH,
    F_SPEC,
    F_STEPS,
    FAILS,
    HOLDS,
    IS_PENDING,
    M_PASS_ERRORS,
    M_RULE,
    MODE_REGISTER,
    NO_ORDER,
    P_ARITY,
    P_CHECKS,
    P_LEFT,
    P_OPERATOR,
    P_REGISTER,
    P_RIGHT,
    P_SPEC,
    PENDING,
    SPEC_WORDS,
    STACK,
    UNEQUAL,
    X_REGISTER,
    X_TERM,
)


@kernel
def has_no_value(steps: int, step: int, spec: int, registers: int) -> bool:
    """Whether a register that an atom needs was left without a value by an error."""
    for column in range(get(steps, step + P_ARITY)):
        here = get(steps, step + P_SPEC) + column * SPEC_WORDS
        if get(spec, here) == MODE_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return True
    return False


@kernel
def code_has_value(spec: int, at: int, length: int, registers: int) -> bool:
    """Whether every register that an expression reads has a value."""
    for n in range(length):
        here = at + n * EXPRESSION_WORDS
        if get(spec, here) == X_REGISTER and get(registers, get(spec, here + 1)) < 0:
            return False
    return True


@kernel
def compare_step(frame: int, step: int) -> int:
    """Judge a comparison. One that reads something without a value cannot fail."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    registers = get(frame, F_REGISTERS)
    dictionary = get(frame, F_DICTIONARY)
    stack = get(frame, F_SCRATCH) + 8 * STACK
    at = get(steps, step + P_SPEC)
    left = get(steps, step + P_LEFT)
    right = get(steps, step + P_RIGHT)
    operator = get(steps, step + P_OPERATOR)
    behind = at + left * EXPRESSION_WORDS
    if not code_has_value(spec, at, left + right, registers):
        return HOLDS
    if operator <= UNEQUAL and left == 1 and right == 1:
        first = get(spec, at + 1) if get(spec, at) == X_TERM else get(registers, get(spec, at + 1))
        second = (
            get(spec, behind + 1) if get(spec, behind) == X_TERM else get(registers, get(spec, behind + 1))
        )
        if first == second:
            return HOLDS if operator == EQUAL else FAILS
    evaluate_code(frame, at, left, stack, 0)
    evaluate_code(frame, behind, right, stack, 2)
    return compare_values(dictionary, stack, operator)


@kernel
def bind_step(frame: int, step: int) -> int:
    """Bind a register; where the expression has no value, leave it without one and return NO_ORDER."""
    steps = get(frame, F_STEPS)
    spec = get(frame, F_SPEC)
    registers = get(frame, F_REGISTERS)
    stack = get(frame, F_SCRATCH) + 8 * STACK
    at = get(steps, step + P_SPEC)
    length = get(steps, step + P_LEFT)
    term = -1
    known = code_has_value(spec, at, length, registers)
    if known:
        evaluate_code(frame, at, length, stack, 0)
        if get(stack, 0) == IS_PENDING:
            return PENDING
        term = term_of(get(frame, F_DICTIONARY), stack, 0)
    register = get(steps, step + P_REGISTER)
    if not get(steps, step + P_CHECKS):
        put(registers, register, term)
    elif term >= 0 and get(registers, register) != term:
        return FAILS
    # What an earlier error left open is not an error of its own.
    return HOLDS if term >= 0 or not known else NO_ORDER


@kernel
def note_error(frame: int, state: int) -> None:
    """Count a binding that had no value, and keep the registers of a rule's first."""
    errors = get(frame, F_ERRORS)
    registers = get(frame, F_REGISTERS)
    size = get(frame, F_ERROR_WORDS)
    at = get(state, M_RULE) * size
    count = get(state, M_PASS_ERRORS) + 1
    put(state, M_PASS_ERRORS, count)
    if get(errors, at) == 0 and count == 1:
        for n in range(size - 1):
            put(errors, at + 1 + n, get(registers, n))
