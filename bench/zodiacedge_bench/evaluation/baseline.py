"""The committed results: the JSON of each benchmark without the times of single runs."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Document = Mapping[str, Any]

_MISSED = "missed.toml"
# Lists with an entry per run or per change, and counts per predicate that the code knows anyway.
_LEFT_OUT = frozenset({"runs", "scratch_runs", "derived"})


def trimmed(document: object) -> object:
    """Return a result without the times of single runs."""
    match document:
        case dict():
            return {
                key: trimmed(value)
                for key, value in document.items()
                if key not in _LEFT_OUT and not (key.endswith("seconds") and isinstance(value, list))
            }
        case list():
            return [trimmed(item) for item in document]
    return document


def read_results(folder: Path) -> dict[str, Document]:
    """Return the results in a folder by the name of their benchmark."""
    documents = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json")))
    return {document["bench"]: document for document in documents}


def write_results(results: Mapping[str, Document], folder: Path) -> None:
    """Write results into a folder, trimmed; those of other benchmarks stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in results.items():
        text = json.dumps(trimmed(document), indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read_profiles(folder: Path) -> dict[str, str]:
    """Return what profiles say about missed targets, by the begin of the target's text."""
    path = folder / _MISSED
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
