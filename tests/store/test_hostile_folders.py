"""Stores from elsewhere whose files lead out of them: nothing outside is read as ours, written or emptied."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import zodiacedge as ze
from store.conftest import code
from zodiacedge.pipeline.publish_slices import Device, publish
from zodiacedge.store.layout import DELTA_LOG, LOCK, LOG_FOLDER, MARKER
from zodiacedge.store.location.lock import WriterLock

PRECIOUS = b"years of work\n"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of the user's."""
    path = tmp_path / "precious.txt"
    path.write_bytes(PRECIOUS)
    return path


def refused(store: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(ze.ZodiacError, match="is a link or no ordinary file") as caught:
            ze.open(store, read_only=read_only)
        assert code(caught.value) == "D022"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [LOCK, MARKER, f"{LOG_FOLDER}/{1:020d}.log", f"{DELTA_LOG}/{1:020d}.json"])
def test_a_file_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    farm: Path, precious: Path, name: str
) -> None:
    path = farm / name
    path.unlink()
    path.symlink_to(os.path.relpath(precious, path.parent))
    refused(farm)
    assert precious.read_bytes() == PRECIOUS


@pytest.mark.parametrize("pattern", [LOG_FOLDER, DELTA_LOG, "relation=edge*", "relation=edge*/segment=*"])
def test_a_folder_that_is_a_link_is_refused_and_what_it_leads_to_stays(farm: Path, pattern: str) -> None:
    (folder,) = list(farm.glob(pattern))[:1]
    outside = farm.parent / "outside"
    shutil.move(folder, outside)
    folder.symlink_to(outside)
    before = contents(outside)
    refused(farm)
    assert contents(outside) == before


def test_streams_do_not_note_elsewhere_what_they_took(farm: Path, tmp_path: Path) -> None:
    (farm / "_streams").symlink_to(tmp_path)
    refused(farm)


def test_a_pipe_among_the_files_does_not_make_anybody_wait(farm: Path) -> None:
    os.mkfifo(farm / LOG_FOLDER / f"{9:020d}.log")
    refused(farm)


def test_a_lock_that_is_a_pipe_is_refused(farm: Path) -> None:
    (farm / LOCK).unlink()
    os.mkfifo(farm / LOCK)
    refused(farm)
    with pytest.raises(ze.ZodiacError) as caught:
        WriterLock(farm / LOCK)
    assert code(caught.value) == "D022"


def test_no_store_is_made_where_a_lock_leads_elsewhere(place: Path, precious: Path) -> None:
    place.mkdir()
    (place / LOCK).symlink_to(precious)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(place, create=True)
    assert code(caught.value) == "D022"
    assert precious.read_bytes() == PRECIOUS


def test_the_lock_alone_follows_no_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / LOCK).symlink_to(precious)
    with pytest.raises(ze.ZodiacError) as caught:
        WriterLock(tmp_path / LOCK)
    assert code(caught.value) == "D022"
    assert precious.read_bytes() == PRECIOUS


def test_a_file_with_a_second_name_keeps_what_somebody_else_wrote(farm: Path, precious: Path) -> None:
    (farm / LOCK).unlink()
    (farm / LOCK).hardlink_to(precious)
    with ze.open(farm) as kb:
        with pytest.raises(ze.ZodiacError) as caught:
            ze.open(farm)
        assert code(caught.value) == "D003"
        with kb.change() as c:
            c.add_facts("edge(x, y) .")
    assert precious.read_bytes() == PRECIOUS


def test_a_store_may_be_named_by_a_link(farm: Path, tmp_path: Path) -> None:
    named = tmp_path / "farm"
    named.symlink_to(farm)
    with ze.open(named) as kb, kb.change() as c:
        c.add_facts("edge(x, y) .")
    with ze.open(farm, read_only=True) as kb:
        assert kb.query("?- edge(x, y) .")


def test_links_that_are_none_of_the_stores_are_left_alone(farm: Path, precious: Path) -> None:
    (farm / "notes.txt").symlink_to(precious)
    with ze.open(farm) as kb:
        assert kb.version == 3


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "..", ".", "", "a\\b", "a\0b"])
def test_a_device_is_not_called_by_a_way_out(name: str) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        Device(name, {})
    assert code(caught.value) == "U022"


def test_devices_are_called_as_one_likes(farm: Path, tmp_path: Path) -> None:
    names = ["wt 1", "urn:wt:2", "Rügen.3", ".4", "a..b"]
    done = publish(farm, tmp_path / "fleet", ["edge(_, _)"], [Device(name, {}) for name in names])
    assert [Path(one.store).name for one in done] == [f"{name}.zodiac" for name in names]
    assert {path.name for path in (tmp_path / "fleet").iterdir()} == {f"{name}.zodiac" for name in names}


def test_devices_of_one_name_are_refused_before_a_slice_is_written(farm: Path, tmp_path: Path) -> None:
    devices = [Device(name, {}) for name in ("wt1", "wt2", "wt1")]
    with pytest.raises(ze.ZodiacError, match="several devices are called wt1") as caught:
        publish(farm, tmp_path / "fleet", ["edge(_, _)"], devices)
    assert code(caught.value) == "U025"
    assert not (tmp_path / "fleet").exists()
