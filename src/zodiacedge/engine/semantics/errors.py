"""The evaluation error: an expression that has no value for a binding."""

from __future__ import annotations


class NoValue(Exception):
    """An expression, a comparison or an aggregate has no result; the binding is dropped."""
