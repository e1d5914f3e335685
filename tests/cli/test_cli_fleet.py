"""`zodiac keys` and `zodiac publish`: files that are written, and what is refused."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from packs.making import made
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.file import encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Done

CODE = f"{'0' * 32}-{'0' * 20}"


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


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield str(other.getsockname()[1])


def problem(done: Done, code: str, text: str) -> None:
    """Assert that a command was refused with one clear message."""
    assert done.code in {1, 3}, done.err
    assert f"error {code}: " in done.err
    assert text in done.err
    assert "internal" not in done.err


@pytest.mark.usefixtures("repository")
def test_a_hub_that_cannot_listen_says_so(zodiac: Callable[..., Done], taken: str) -> None:
    Path("hub").mkdir()
    Path("repository").rename("hub/repository")
    hub = ("hub", "hub", "--keys", "keys")
    problem(zodiac(*hub, "--port", taken), "F010", f"cannot listen on 127.0.0.1:{taken}")
    problem(zodiac(*hub, "--host", "192.0.2.1"), "F010", "192.0.2.1:8420")
    tls = ("--tls-cert", "missing.crt", "--tls-key", "missing.key")
    problem(zodiac(*hub, "--port", "0", *tls), "U005", "missing.crt")
    assert zodiac("query", "hub/store", "?- device(D) .").code == 0


@pytest.mark.usefixtures("repository")
def test_a_hub_whose_folder_cannot_be_written_says_so(zodiac: Callable[..., Done]) -> None:
    Path("hub").mkdir()
    Path("repository").rename("hub/repository")
    Path("hub/rules").write_text("a file where a folder is to be", "utf-8")
    problem(zodiac("hub", "hub", "--keys", "keys", "--port", "0"), "U005", "hub/rules")
    Path("hub/codes").write_text("a file where a folder is to be", "utf-8")
    problem(zodiac("enrol", "hub", "wt1"), "U005", "hub/codes")


def test_keys_and_packs_in_folders_that_cannot_be_written(
    zodiac: Callable[..., Done], repository: tuple[str, ...]
) -> None:
    Path("file").write_text("no folder", "utf-8")
    problem(zodiac("keys", "init", "file/keys", "--repo", "other"), "U005", "file/keys")
    problem(zodiac("keys", "init", "more", "--repo", "file/other"), "U005", "file/other")
    assert not Path("more").exists()
    Path("repository/targets").write_text("no folder", "utf-8")
    problem(zodiac("publish", "1", *repository), "U005", "repository/targets")


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--hub", "127.0.0.1:8420"), "F009", "127.0.0.1:8420 is no address of a hub"),
        (("--hub", "ftp://hub"), "F009", "ftp://hub is no address of a hub"),
        (("--hub", "http://"), "F009", "is no address of a hub"),
        (("--hub", "http://127.0.0.1:1"), "F008", "this device is not enrolled"),
        (("--hub", "http://127.0.0.1:1", "--name", "a b", "--code", CODE), "F008", "is no name of a device"),
        (("--hub", "http://127.0.0.1:1", "--name", "a", "--code", CODE[:-1]), "F008", "is no code"),
        (("--hub", "http://127.0.0.1:1", "--name", "a", "--code", CODE), "F003", "does not answer"),
        (("--hub", "http://127.0.0.1:1", "--folder", "file/folder"), "U005", "file/folder"),
    ],
)
def test_an_agent_that_cannot_start_says_why(
    zodiac: Callable[..., Done], options: tuple[str, ...], code: str, text: str
) -> None:
    Path("file").write_text("no folder", "utf-8")
    problem(zodiac("agent", "wt1.zodiac", *options), code, text)


@pytest.mark.parametrize("option", ["--http", "--serve"])
def test_an_agent_whose_port_is_taken_says_so(zodiac: Callable[..., Done], taken: str, option: str) -> None:
    # As an enrolled device has it.
    folder = Path("wt1.zodiac.agent")
    folder.mkdir()
    (folder / "memory.json").write_text('{"name": "wt1"}', "utf-8")
    (folder / "root.json").write_text("{}", "utf-8")
    agent = ("agent", "wt1.zodiac", "--hub", "http://127.0.0.1:1")
    problem(zodiac(*agent, option, taken), "F010", f"127.0.0.1:{taken}")
