"""`zodiac retain`: say or set how long a store keeps its versions."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.open_kb import reading, writing
from zodiacedge.cli.options import EngineOptions, store_argument, wait_option
from zodiacedge.kb.arguments import LONGEST

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "min": "minutes", "s": "seconds"}
_TIME = re.compile(rf"(\d+(?:\.\d+)?) *({'|'.join(_UNITS)})")


class Time(click.ParamType["timedelta"]):  # type: ignore[type-arg,unused-ignore]
    """A length of time: `7d`, `12h`, `30min`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:  # noqa: ANN401 - as click has it
        """Return the time, or fail."""
        match = _TIME.fullmatch(value)
        if not match:
            self.fail(f"{value!r} is not a time: write 7d, 12h, 30min, 2w or 45s.", param, ctx)
        try:
            time = timedelta(**{_UNITS[match[2]]: float(match[1])})
        except OverflowError:
            time = timedelta.max
        if time > LONGEST:
            self.fail(f"{value} is longer than {LONGEST.days:,} days.", param, ctx)
        return time


@click.command("retain")
@store_argument
@click.argument("time", type=Time(), metavar="[TIME]", required=False)
@wait_option
@common
def command(console: Console, *, store: str, time: timedelta | None, wait: float) -> None:
    r"""Say how long a store keeps its versions, or set it: 7d, 12h, 30min. A new store keeps a week.

    Processes that write to the store remove older versions by themselves, a part at a time. The last
    version is always kept. `zodiac vacuum` removes them at once.

    \b
    Example:
      zodiac retain farm.zodiac 7d
    """
    on = EngineOptions()
    if time is None:
        with reading(console, store, on=on) as kb:
            kept = kb.retained
    else:
        with writing(console, store, on, wait=wait) as kb:
            kb.retain(time)
            kept = time
    console.text(f"versions of {store} are kept for {shown(kept)}")
    if console.as_json:
        console.json({"seconds": kept.total_seconds()})


def shown(time: timedelta) -> str:
    """Return a time as `zodiac retain` takes it: `7d`, `90min`."""
    seconds = time.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds and not seconds % size:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
