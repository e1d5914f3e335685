"""Refuses commands whose libraries are not installed."""

from __future__ import annotations

from importlib.util import find_spec

from zodiacedge.errors import Diagnostic, UsageProblem


def need(*modules: str, extra: str = "fleet") -> None:
    """Raise if a library of an extra is missing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        note = f"install what it needs: pip install 'zodiacedge[{extra}]'"
        raise UsageProblem(Diagnostic("F006", f"this needs {', '.join(missing)}", note))
