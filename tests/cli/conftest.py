"""Commands run in an empty folder, in this process where that is enough."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from zodiacedge.cli.app import zodiac as group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


NOBODY = 65534


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, object]:
        """The one JSON document on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the working one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def zodiac(folder: Path) -> Callable[..., Done]:
    """Run a command: `zodiac("check", "a.rules")`."""
    del folder

    def run(*args: str) -> Done:
        result = CliRunner().invoke(group, args, prog_name="zodiac")
        assert "Traceback" not in result.output
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def save(folder: Path) -> Callable[[str, str], Path]:
    """Save a text under a name in the working folder."""

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def unreadable(folder: Path) -> Path:
    """A rule file that may not be read."""
    del folder
    path = Path("secret.rules")
    path.write_text("p(a) .\n")
    path.chmod(0)
    return path


@pytest.fixture
def ordinary_user(folder: Path) -> Iterator[None]:
    """Somebody whom permissions bind, though root may run the tests. Names must be relative to the folder."""
    folder.chmod(0o777)
    # What commands load only when they run must be loaded while that is still allowed.
    (folder / "any.rules").write_text("p(a) .\n")
    for name in ("check", "run"):
        CliRunner().invoke(group, (name, "any.rules"))
    root = os.geteuid() == 0
    if root:
        os.setresuid(NOBODY, NOBODY, 0)
    yield
    if root:
        os.setresuid(0, 0, 0)
