"""Commands of other distributions: listed and run like ours, and no harm where one is absent or broken."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import click
import pytest

from zodiacedge.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

GROUP = "zodiacedge.commands"
BROKEN = EntryPoint("weather", "zodiacedge_weather.command:command", GROUP)
MESSAGE = "The plugin 'weather' cannot be loaded: ModuleNotFoundError: No module named 'zodiacedge_weather'"


@click.command("greet")
def greet() -> None:
    """Greet the turbines."""
    click.echo("hello")


def install(monkeypatch: pytest.MonkeyPatch, *plugins: EntryPoint) -> None:
    """Let these be the only plugins."""

    def entry_points(*, group: str) -> list[EntryPoint]:
        return [plugin for plugin in plugins if plugin.group == group]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)


def test_without_the_benchmarks_their_commands_say_how_to_get_them(
    zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for command in ("bench", "generate"):
        done = zodiac(command, "graphs")
        assert (done.code, done.out) == (2, "")
        assert f"There is no command '{command}'." in done.err
        assert "`make setup`, or `pip install ./bench`" in done.err
        assert f"\n  {command} " not in zodiac("--help").out


def test_a_plugin_is_listed_with_its_help_and_runs(zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, EntryPoint("greet", f"{__name__}:greet", GROUP))
    done = zodiac("--help")
    assert done.code == 0
    assert any(line.split(maxsplit=1) == ["greet", "Greet the turbines."] for line in done.out.splitlines())
    assert zodiac("greet").out == "hello\n"
    assert "Did you mean greet?" in zodiac("gret").err


def test_the_benchmarks_are_a_plugin() -> None:
    for command in ("bench", "generate"):
        assert app.zodiac.get_command(click.Context(app.zodiac), command) is not None
        assert command in app.zodiac.list_commands(click.Context(app.zodiac))


def test_a_plugin_that_cannot_be_imported_breaks_nothing_else(
    zodiac: Zodiac, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, BROKEN)
    done = zodiac("--help")
    assert (done.code, done.err) == (0, "")
    assert MESSAGE in " ".join(done.out.split())
    assert "\n  check " in done.out
    save("a.rules", "p(a) .\n")
    assert zodiac("check", "a.rules").code == 0


def test_a_broken_plugin_ends_with_one_message(zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, BROKEN)
    for args in (("weather",), ("weather", "--help")):
        done = zodiac(*args)
        assert (done.code, done.out, done.err) == (1, "", f"Error: {MESSAGE}\n")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (f"{__name__}:absent", "AttributeError"),
        (f"{__name__}:GROUP", f"TypeError: {__name__}:GROUP is not a command"),
    ],
)
def test_a_plugin_that_is_no_command_is_broken(
    zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    install(monkeypatch, EntryPoint("odd", value, GROUP))
    assert zodiac("--help").code == 0
    done = zodiac("odd")
    assert (done.code, done.out) == (1, "")
    assert f"The plugin 'odd' cannot be loaded: {reason}" in done.err


def test_a_plugin_does_not_replace_a_command_of_ours(zodiac: Zodiac, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, EntryPoint("check", f"{__name__}:greet", GROUP))
    assert "Greet" not in zodiac("--help").out
    assert "Parse and check rule files" in zodiac("check", "--help").out
