"""`zodiac hub`: the hub of a fleet as a web server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.fleet.usable import allow_connections, can_use, listening
from zodiacedge.cli.options import FILE
from zodiacedge.extras import need
from zodiacedge.util.freed_memory import hold_little

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

# Devices report twice in an upgrade, with a probation between: they need not connect again, by TLS above all.
_KEPT_SECONDS = 75


@click.command("hub")
@click.argument("folder", type=FILE, metavar="DIR")
@click.option("--keys", required=True, type=FILE, metavar="KEYS", help="The folder with the key online.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8420, show_default=True)
@click.option("--tls-cert", type=FILE, metavar="FILE", help="A certificate, for TLS.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="Its key.")
@common
def command(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    folder: str,
    keys: str,
    host: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
) -> None:
    r"""Serve the packs of DIR/repository to devices, and decide by the rules of DIR/rules who runs which.

    What a hub knows is a store, DIR/store, which can be queried while it runs.

    \b
    Example:
      zodiac hub hub --keys keys
      zodiac hub hub --keys keys --host 0.0.0.0 --tls-cert hub.crt --tls-key hub.key
    """
    need("fleet", "zodiac hub")
    hold_little()
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("TLS needs both --tls-cert and --tls-key.")
    import uvicorn  # noqa: PLC0415 - of an extra

    from zodiacedge.fleet.hub.server import Hub, Server  # noqa: PLC0415 - of an extra

    allow_connections()
    with listening(host, port) as listens:
        with can_use(folder):
            hub = Hub(Path(folder), Path(keys), lambda problem: console.fail(problem.diagnostics))
        try:
            config = uvicorn.Config(
                hub.app,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                ssl_certfile=tls_cert,
                ssl_keyfile=tls_key,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=_KEPT_SECONDS,
            )
            with can_use(f"{tls_cert} with {tls_key}"):
                config.load()
            at = f"{host}:{listens.getsockname()[1]}"
            console.text(f"hub {folder} on {'https' if tls_cert else 'http'}://{at}/")
            Server(hub, config).run([listens])
        finally:
            hub.close()
