"""`zodiac warm`: compile the kernels for the processor of this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict
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

    Where there is a C compiler and the headers of Python, they are linked into a module, so that a run does
    without Numba. Kernels that come with the package are for any processor of its kind. Those of the cache
    are used instead where there are any. With --check the exit code is 1 if a run would have to compile.

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
        console.json(asdict(kernels))
    if kernels.missing:
        sys.exit(1)


def _compiled(kernels: Kernels) -> list[str]:
    done = counted(kernels.compiled, "kernel") if kernels.compiled else "no kernel, as all are there"
    linked = f"linked: {kernels.linked}" if kernels.linked else f"not linked: {kernels.unlinked}"
    return [
        f"compiled {done}; for {kernels.processor}, {kernels.seconds:.1f} s",
        f"folder: {kernels.folder}",
        linked,
    ]


def _found(kernels: Kernels) -> list[str]:
    summary = "a run has to compile kernels" if kernels.missing else "a run compiles no kernel"
    timed = f"{summary}; loaded in {kernels.seconds:.1f} s"
    if kernels.linked:
        return [f"linked kernels: {kernels.linked}", timed]
    package = f"not usable: {kernels.obstacle}" if kernels.obstacle else f"{kernels.shipped} used"
    return [
        "linked kernels: none",
        f"kernels of the package: {package}",
        f"kernels for {kernels.processor}: {kernels.own} used, in {kernels.folder or 'no folder'}",
        timed,
    ]
