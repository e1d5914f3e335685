"""`zodiac warm`: compile the kernels for the processor of this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.errors import counted

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.engine.embedded.warm_up import Kernels


@click.command("warm")
@click.option("--check", is_flag=True, help="Print which kernels a run would use; compile nothing.")
@common
def command(console: Console, *, check: bool) -> None:
    r"""Compile the kernels for the processor of this machine, into the cache of the user.

    Kernels that come with the package are for any processor of its kind. Those of the cache are used instead
    where there are any. With --check the exit code is 1 if a run would have to compile.

    \b
    Example:
      zodiac warm
      NUMBA_CACHE_DIR=/opt/kernels zodiac warm
      zodiac warm --check
    """
    from zodiacedge.engine.embedded import warm_up  # noqa: PLC0415 - loads the engine

    kernels = warm_up.find_kernels() if check else warm_up.compile_for_this_processor()
    for line in _found(kernels) if check else _compiled(kernels):
        console.text(line)
    if console.as_json:
        console.json(_document(kernels))
    if kernels.missing:
        sys.exit(1)


def _compiled(kernels: Kernels) -> list[str]:
    done = counted(kernels.compiled, "kernel") if kernels.compiled else "no kernel, as all are there"
    return [f"compiled {done}; for {kernels.processor}, {kernels.seconds:.1f} s", f"folder: {kernels.folder}"]


def _found(kernels: Kernels) -> list[str]:
    package = f"not usable: {kernels.obstacle}" if kernels.obstacle else f"{kernels.shipped} used"
    summary = "a run has to compile kernels" if kernels.missing else "a run compiles no kernel"
    return [
        f"kernels of the package: {package}",
        f"kernels for {kernels.processor}: {kernels.own} used, in {kernels.folder or 'no folder'}",
        f"{summary}; loaded in {kernels.seconds:.1f} s",
    ]


def _document(kernels: Kernels) -> dict[str, object]:
    return {
        "processor": kernels.processor,
        "folder": str(kernels.folder) if kernels.folder else None,
        "own": kernels.own,
        "shipped": kernels.shipped,
        "compiled": kernels.compiled,
        "missing": kernels.missing,
        "obstacle": kernels.obstacle,
        "seconds": kernels.seconds,
    }
