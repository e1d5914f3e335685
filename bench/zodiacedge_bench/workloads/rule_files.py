"""Reads the rule files of this folder."""

from __future__ import annotations

from importlib.resources import files


def rules(program: str) -> str:
    """Return the text of a program in `rules/`, such as `lubm` or `closure_by_halves`."""
    return (files("zodiacedge_bench.workloads") / "rules" / f"{program}.rules").read_text(encoding="utf-8")
