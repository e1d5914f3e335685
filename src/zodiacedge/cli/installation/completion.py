"""`zodiac completion`: print the script by which a shell completes commands, options and file names.

The scripts are click's: the shell runs `zodiac` itself at every Tab, so modules of commands load quickly.
Which words are file names is said by the type of options and arguments (`options.FILE`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from zodiacedge.cli.app import common

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console

_SHELLS = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(tuple(_SHELLS)))
@common
def command(console: Console, *, shell: str) -> None:
    r"""Print the script that makes Tab complete commands, options and file names.

    \b
    Example:
      zodiac completion fish | source         in ~/.config/fish/config.fish
      eval "$(zodiac completion bash)"        in ~/.bashrc
      eval "$(zodiac completion zsh)"         in ~/.zshrc, after compinit
    """
    group = click.get_current_context().find_root().command
    script = _SHELLS[shell](group, {}, "zodiac", "_ZODIAC_COMPLETE").source()
    if console.as_json:
        console.json({"shell": shell, "script": script})
    else:
        click.echo(script)
