"""`zodiac keys` and `zodiac publish`: files that are written, and what is refused."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from packs.making import made
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.file import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Done


@pytest.fixture
def repository(zodiac: Callable[..., Done]) -> tuple[str, ...]:
    assert zodiac("keys", "init", "keys", "--repo", "repository").code == 0
    first, second = made("p(X) :- q(X) ."), made("p(X) :- r(X) .", 2)
    for name, contents in (("1", first), ("2", second), ("delta", delta_between(first, second))):
        Path(name).write_bytes(encoded(contents))
    return "--repo", "repository", "--keys", "keys"


def test_packs_are_published_with_deltas(zodiac: Callable[..., Done], repository: tuple[str, ...]) -> None:
    assert zodiac("publish", "1", *repository).out == "published packs/diagnosis/1.zpack\n"
    done = zodiac("publish", "2", *repository, "--json")
    assert done.document["published"] == ["packs/diagnosis/2.zpack", "packs/diagnosis/1-2.zdelta"]
    again = zodiac("publish", "1", *repository)
    assert (again.code, "F007" in again.err) == (1, True)


def test_keys_are_for_their_owner(repository: tuple[str, ...]) -> None:
    assert repository[3] == "keys"
    for key in Path("keys").iterdir():
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_what_cannot_be_published_is_refused(
    zodiac: Callable[..., Done], repository: tuple[str, ...]
) -> None:
    assert "P009" in zodiac("publish", "delta", *repository).err
    assert "U004" in zodiac("publish", "missing", *repository).err
    assert "F005" in zodiac("publish", "1", "--repo", "repository", "--keys", "nowhere").err
    assert "F005" in zodiac("publish", "1", "--repo", "nowhere", "--keys", "keys").err
    assert not Path("nowhere").exists()
    assert "F005" in zodiac("keys", "init", "more", "--repo", "repository").err
    assert not Path("more").exists()
    assert "F005" in zodiac("keys", "init", "keys", "--repo", "other").err
    Path("keys/packs.pem").write_text("no key", encoding="utf-8")
    assert "F005" in zodiac("publish", "1", *repository).err


def test_keys_are_replaced(zodiac: Callable[..., Done], repository: tuple[str, ...]) -> None:
    before = Path("keys/online.pem").read_bytes()
    assert zodiac("keys", "rotate", "keys", "--repo", "repository", "online").code == 0
    assert Path("keys/online.pem").read_bytes() != before
    assert zodiac("publish", "1", *repository).code == 0
    assert "F005" in zodiac("keys", "rotate", "nowhere", "--repo", "repository", "online").err
