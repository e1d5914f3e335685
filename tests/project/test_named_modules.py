"""The modules that the documents for contributors name are in the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "zodiacedge"
# Paths are written from one of these.
BASES = (
    ROOT,
    ROOT / "bench",
    ROOT / "tests",
    PACKAGE,
    PACKAGE / "engine" / "embedded",
    PACKAGE / "engine" / "spark",
)
DOCUMENTS = (
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "README.md",
    ROOT / "bench" / "README.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "glossary.md",
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
)
_PATH = re.compile(r"`([a-z_*]+(?:/[a-z_*]+)+(?:\.py|/))`")


def missing(text: str) -> list[str]:
    return [path for path in _PATH.findall(text) if not any(any(base.glob(path)) for base in BASES)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_that_a_document_names_exists(document: Path) -> None:
    assert missing(document.read_text(encoding="utf-8")) == []


def test_a_module_that_does_not_exist_is_found() -> None:
    assert missing("`graph/hyper_graph.py`, `maintain/dred.py`, `graph/nowhere.py`, `no/where/`") == [
        "graph/nowhere.py",
        "no/where/",
    ]
