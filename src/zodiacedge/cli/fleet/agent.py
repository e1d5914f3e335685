"""`zodiac agent`: the agent of a device."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.fleet.usable import can_listen, can_use
from zodiacedge.cli.open_kb import writing
from zodiacedge.cli.options import FILE, EngineOptions, functions_option, limit_options, store_argument
from zodiacedge.extras import need
from zodiacedge.util.freed_memory import hold_little

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.cli.console import Console
    from zodiacedge.engine.limits import Limits


@click.command("agent")
@store_argument
@click.option("--hub", required=True, metavar="URL", help="The address of the hub.")
@click.option("--name", default="", metavar="NAME", help="The name of the device, to enrol it.")
@click.option("--code", default="", metavar="CODE", help="The code that enrols it, of zodiac enrol.")
@click.option("--folder", type=FILE, metavar="DIR", help="The agent's own folder.  [default: STORE.agent]")
@click.option("--landing", type=FILE, metavar="DIR", help="Take the files of facts that arrive in a folder.")
@click.option("--lines", is_flag=True, help="Take lines of facts on standard input.")
@click.option("--http", type=click.IntRange(0, 65535), metavar="PORT", help="Take POST /facts from here.")
@click.option("--mqtt", metavar="HOST:PORT/TOPIC", help="Take the messages of a topic.")
@click.option(
    "--allow", multiple=True, metavar="PACK", help="Take it from neighbours unassigned, if no hub is heard."
)
@click.option("--serve", type=click.IntRange(0, 65535), metavar="PORT", help="Hand packs on to neighbours.")
@click.option(
    "--serve-host",
    metavar="HOST",
    help="The address for neighbours.  [default: that of --discover, or 127.0.0.1]",
)
@click.option("--discover", metavar="ADDRESS", help="Find neighbours in the network of this own address.")
@click.option(
    "--probation", type=click.FloatRange(min=0), default=60.0, show_default=True, help="Seconds of probation."
)
@click.option(
    "--hold-off",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds for which a pack stays that is needed no more.",
)
@click.option(
    "--silence",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds after which the facts of a silent neighbour go.",
)
@click.option("--interval", type=click.FloatRange(min=0.05), default=1.0, show_default=True, help="Of steps.")
@limit_options
@functions_option
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    store: str,
    hub: str,
    name: str,
    code: str,
    folder: str | None,
    landing: str | None,
    lines: bool,
    http: int | None,
    mqtt: str | None,
    allow: tuple[str, ...],
    serve: int | None,
    serve_host: str | None,
    probation: float,
    hold_off: float,
    discover: str | None,
    silence: float,
    interval: float,
    limits: Limits,
    functions: tuple[str, ...],
) -> None:
    r"""Run a store on a device: take readings, and keep the packs that the hub assigns.

    The rules of the device say what it needs: while zodiac:needs("diagnosis") holds, the pack is asked for.
    The hub may be a neighbour that serves. The first start enrols the device with a code; later ones need
    neither a code nor the hub. The clock of the store is that of the system. Ctrl-C ends it.

    \b
    Example:
      zodiac agent wt1.zodiac --hub http://127.0.0.1:8420 --name wt1 --code CODE --landing readings
    """
    need("fleet", "zodiac agent")
    hold_little()
    if mqtt:
        need("mqtt", "--mqtt")
    if discover:
        need("discovery", "--discover")
    from zodiacedge.fleet.agent.agent import Agent, AgentOptions  # noqa: PLC0415 - of an extra
    from zodiacedge.fleet.agent.listener import address_of  # noqa: PLC0415 - of an extra
    from zodiacedge.fleet.agent.relay import Relay  # noqa: PLC0415 - of an extra
    from zodiacedge.fleet.agent.sources import (  # noqa: PLC0415 - of an extra
        HttpSource,
        MqttSource,
        follow_lines,
    )
    from zodiacedge.pipeline.stream import Stream  # noqa: PLC0415 - loads the engine

    options = AgentOptions(hub, name, code, probation, hold_off, silence, interval, allow)
    with ExitStack() as open_things:
        kb = open_things.enter_context(
            writing(
                console,
                store,
                EngineOptions(functions=functions),
                create=True,
                clock="system",
                limits=limits,
            )
        )
        stream = Stream(kb, landing) if landing else None
        own = Path(folder or f"{store.rstrip('/')}.agent")
        with can_use(str(own)):
            agent = Agent(kb, own, options, console.text)
        open_things.callback(agent.close)
        if http is not None:
            with can_listen("127.0.0.1", http, "--http"):
                source = HttpSource(kb, http, console.note)
            open_things.callback(source.close)
            console.text(f"taking facts on http://127.0.0.1:{source.server_port}/facts")
        if mqtt:
            open_things.callback(MqttSource(kb, mqtt, console.note).close)
        relay = None
        if serve is not None:
            host = serve_host or discover or "127.0.0.1"
            with can_listen(host, serve, "--serve-host and --serve"):
                relay = Relay(kb, agent.folder / "relay", hub, host, serve)
            open_things.callback(relay.close)
            agent.serve(relay.own_base)
            console.text(f"serving neighbours on {address_of(host, relay.server_port)}")
        if lines:
            follow_lines(kb, sys.stdin, console.note)
        sources: list[Callable[[], object]] = [stream.follow] if stream else []
        if discover:
            from zodiacedge.fleet.agent.discovery import Announced, Discovery  # noqa: PLC0415 - of an extra

            announced = None
            if relay:
                at = relay.announced_host(discover)
                announced = Announced(agent.mark, agent.memory.name, at, relay.server_port)
            network = Discovery(kb, discover, announced)
            open_things.callback(network.close)
            sources.append(network.look)
        agent.run(*sources)
