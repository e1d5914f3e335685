"""The lock file holds what `pyproject.toml` asks for, every file by its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def locked() -> dict[str, list[tuple[str, int]]]:
    """Return, for each package, its pinned versions and how many hashes each has."""
    text = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    pins: dict[str, list[tuple[str, int]]] = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            pin = re.match(r"(?P<name>[\w.-]+)==(?P<version>[\w.+!]+)", line)
            assert pin, f"not a pin: {line}"
            name = canonicalize_name(pin["name"])
            pins.setdefault(name, []).append((pin["version"], line.count("--hash=sha256:")))
    return pins


def asked() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table = project["project"]
    extras = table["optional-dependencies"]
    waiting = [*table["dependencies"], *extras["dev"], *project["build-system"]["requires"]]
    found = []
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name == table["name"]:
            waiting += [text for extra in requirement.extras for text in extras[extra]]
        else:
            found.append(requirement)
    return found


def test_every_pin_has_a_hash() -> None:
    assert [name for name, pins in locked().items() if not all(hashes for _, hashes in pins)] == []


def test_the_lock_satisfies_the_project() -> None:
    pins = locked()
    unmet = [
        str(requirement)
        for requirement in asked()
        if not pins.get(canonicalize_name(requirement.name))
        or not all(requirement.specifier.contains(v) for v, _ in pins[canonicalize_name(requirement.name)])
    ]
    assert unmet == [], "run make lock"
