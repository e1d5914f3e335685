"""What `zodiac log` shows is what was said, each version once, whatever its message holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

MESSAGE = "noon\nversion 9  2026-01-01  root  all is well\0\x1b[2J\r\x9b1A\u2028\u202e ünï 🜚"


def _store(folder: Path) -> str:
    place = folder / "farm.zodiac"
    with ze.open(place, create=True) as kb, kb.change(MESSAGE) as c:
        c.add_facts([("p", 1)])
    return str(place)


def test_a_message_forges_no_entry_and_steers_no_terminal(folder: Path, zodiac: Callable[..., Done]) -> None:
    store = _store(folder)
    escaped = r"noon\nversion 9  2026-01-01  root  all is well\x00\x1b[2J\r\x9b1A\u2028\u202e ünï 🜚"
    header, only = zodiac("log", store).out.splitlines()
    assert header.split() == ["version", "time", "author", "rules", "facts", "explicit", "message"]
    assert only.endswith(f"  +0 -0  +1 -0         1  {escaped}")
    first, second = zodiac("log", store, "--full").out.splitlines()
    assert first.startswith("version 1  ")
    assert first.endswith(escaped)
    assert second == "  rules +0 -0, facts +1 -0, then 1 explicit fact"


def test_a_machine_gets_the_message_as_it_is(folder: Path, zodiac: Callable[..., Done]) -> None:
    versions = zodiac("log", _store(folder), "--json").document["versions"]
    assert isinstance(versions, list)
    assert [one["message"] for one in versions] == [MESSAGE]


def test_a_reader_is_told_of_a_record_that_is_left_out(folder: Path, zodiac: Callable[..., Done]) -> None:
    store = folder / "farm.zodiac"
    kb = ze.open(store, create=True)
    for n in range(2):
        with kb.change(f"change {n}") as c:
            c.add_facts([("p", n)])
    assert kb.store is not None
    kb.store.close()
    (path,) = (store / "_wal").glob("*.log")
    path.write_bytes(path.read_bytes()[:-20])
    for command in (("log",), ("query", "?- p(X) ."), ("verify",)):
        done = zodiac(command[0], str(store), *command[1:])
        assert done.code == 0
        assert "warning W014" in done.err
