"""`docs/diagnostics.md` lists every diagnostic code of the source, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"[A-Z][0-9]{3}")


def codes_in_source() -> set[str]:
    """Return every string of the source that has the shape of a code.

    A code reaches a `Diagnostic` directly or through a helper's argument; either way it is written
    as a string of its own, and nothing else in the package has that shape.
    """
    return {
        node.value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value)
    }


def codes_in_documentation() -> set[str]:
    text = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    return set(re.findall(rf"\b{_CODE.pattern}\b", text))


def test_the_source_has_codes() -> None:
    assert "T001" in codes_in_source()


def test_every_code_of_the_source_is_documented() -> None:
    assert sorted(codes_in_source() - codes_in_documentation()) == []


def test_every_documented_code_is_in_the_source() -> None:
    assert sorted(codes_in_documentation() - codes_in_source()) == []
