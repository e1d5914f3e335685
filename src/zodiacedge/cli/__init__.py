"""The command `zodiac`, one file per command.

app       the group, exit codes, and how errors are shown
console   what goes to standard output and standard error: text, tables, JSON, progress
programs  rule files in, programs with findings out
output    files that commands write
check · run · graph · demo      the commands
"""

from __future__ import annotations

import sys

__all__ = ["INTERRUPTED", "main"]
INTERRUPTED = 130


def main() -> None:
    """Run the command line; who loses patience while it loads sees no traceback."""
    try:
        from zodiacedge.cli.app import main as run  # noqa: PLC0415 - what takes time is loaded inside the try

        run()
    except KeyboardInterrupt:
        sys.stderr.write("zodiac: interrupted\n")
        sys.exit(INTERRUPTED)
