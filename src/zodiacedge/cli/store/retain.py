"""`zodiac retain`: say or set how long a store keeps its versions, and how many bytes it may take."""

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
_SIZES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}
_BYTES = re.compile(rf"(\d{{1,15}}(?:\.\d+)?) *({'|'.join(_SIZES)})", re.IGNORECASE)
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


class Bytes(click.ParamType["int"]):  # type: ignore[type-arg,unused-ignore]
    """A number of bytes: `64MB`, `500kB`."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - as click has it
        """Return the number, or fail."""
        match = _BYTES.fullmatch(value)
        number = int(float(match[1]) * _SIZES[match[2].lower()]) if match else 0
        if number <= 0:
            self.fail(f"{value!r} is no number of bytes: write 64MB, 500kB or 2GB.", param, ctx)
        return number


@click.command("retain")
@store_argument
@click.argument("time", type=Time(), metavar="[TIME]", required=False)
@click.option(
    "--size",
    type=Bytes(),
    metavar="BYTES",
    help="The oldest versions go too where the store takes more, such as 64MB; needs TIME.",
)
@wait_option
@common
def command(console: Console, *, store: str, time: timedelta | None, size: int | None, wait: float) -> None:
    r"""Say how long a store keeps its versions, or set it: 7d, 12h, 30min. A new store keeps a week.

    Processes that write to the store remove older versions by themselves, a part at a time. The last
    version is always kept. `zodiac vacuum` removes them at once. Without `--size` the store may take any
    number of bytes.

    \b
    Example:
      zodiac retain farm.zodiac 7d --size 64MB
    """
    on = EngineOptions()
    if time is None:
        if size is not None:
            raise click.UsageError("--size needs a time: zodiac retain STORE 7d --size 64MB")
        with reading(console, store, on=on) as kb:
            kept, size = kb.retained, kb.retained_bytes
    else:
        with writing(console, store, on, wait=wait) as kb:
            kb.retain(time, most_bytes=size)
            kept = time
    console.text(f"versions of {store} are kept for {shown(kept)}{within(size)}")
    if console.as_json:
        console.json({"seconds": kept.total_seconds(), "bytes": size})


def within(size: int | None) -> str:
    """Return what is said of a bound of bytes, nothing if there is none."""
    return "" if size is None else f", within {size:,} bytes"


def shown(time: timedelta) -> str:
    """Return a time as `zodiac retain` takes it: `7d`, `90min`."""
    seconds = time.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds and not seconds % size:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
