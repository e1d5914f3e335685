"""What callers give to a store: whatever makes no sense is one message with a code, and nothing is done."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.location.base import location_of

if TYPE_CHECKING:
    from collections.abc import Callable

LATIN = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda kb: kb.rollback(99), "D008"),
        (lambda kb: kb.rollback(4), "D008"),
        (lambda kb: kb.rollback(-1), "D008"),
        (lambda kb: kb.rollback("1"), "U013"),
        (lambda kb: kb.at("1"), "U013"),
        (lambda kb: kb.at(1.0), "U013"),
        (lambda kb: kb.at(version=True), "U013"),
        (lambda kb: kb.diff(1, "2"), "U013"),
        (lambda kb: kb.vacuum(7), "U013"),
        (lambda kb: kb.vacuum(timedelta.max), "U021"),
        (lambda kb: kb.vacuum(timedelta(days=-1)), "U021"),
        (lambda kb: kb.rollback(1, LATIN), "U020"),
        (lambda kb: kb.rollback(1, 5), "U013"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_done(
    farm: Path, call: Callable[[ze.KnowledgeBase], object], expected: str
) -> None:
    with ze.open(farm) as kb:
        facts = kb.facts()
        with pytest.raises(ze.ZodiacError) as caught:
            call(kb)
        assert code(caught.value) == expected
        assert caught.value.diagnostics[0].note
        str(caught.value).encode()
        assert (kb.version, kb.facts()) == (3, facts)
    with ze.open(farm, at=1) as kb:
        assert kb.version == 1


def test_the_message_of_a_change_is_a_text_in_utf_8(farm: Path) -> None:
    with ze.open(farm) as kb:
        for message, expected in ((LATIN, "U020"), (5, "U013"), (None, "U013")):
            with pytest.raises(ze.ZodiacError) as caught, kb.change(message) as c:  # type: ignore[arg-type]
                c.add_facts("edge(x, y) .")
            assert code(caught.value) == expected
        assert kb.version == 3


def test_an_account_whose_name_is_not_utf_8_may_change_a_store(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER"):
        monkeypatch.setenv(name, LATIN)
    with ze.open(farm) as kb:
        with kb.change() as c:
            c.add_facts("edge(x, y) .")
        assert kb.log()[-1].author == "caf\\xe9"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (5, "U013"),
        (b"farm", "U013"),
        ("", "D002"),
        ("a\\b", "D002"),
        ("a\0b", "D002"),
        ("a%20b", "D002"),
        (LATIN, "D002"),
        (Path(LATIN), "D002"),
        ("file:///tmp/a%5Cb", "D002"),
        ("ftp://lake/farm", "D002"),
    ],
)
def test_what_cannot_name_a_store_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(path, create=True)
    assert code(caught.value) == expected
    str(caught.value).encode()
    assert not list(tmp_path.iterdir())


def test_versions_are_named_by_numbers_when_a_store_is_opened(farm: Path) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(farm, at="1")  # type: ignore[call-overload]
    assert code(caught.value) == "U013"


@pytest.mark.parametrize("name", ["file:x", "a b", "ü", "a#b?c", "a%", "c:foo", "relation=x", "s3:x"])
def test_a_folder_may_be_called_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with ze.open(name, create=True) as kb, kb.change() as c:
        c.add_facts("p(1) .")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with ze.open(tmp_path / name, read_only=True) as kb:
        assert kb.query("?- p(1) .")


@pytest.mark.parametrize("above", ["a%41", "a\\b", LATIN])
def test_the_folders_above_are_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    (tmp_path / above).mkdir()
    monkeypatch.chdir(tmp_path / above)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open("farm.zodiac", create=True)
    assert code(caught.value) == "D002"
    assert not list((tmp_path / above).iterdir())


def test_hadoops_name_for_s3_means_the_same_store() -> None:
    assert location_of("s3a://lake/farm") == location_of("s3://lake/farm")
