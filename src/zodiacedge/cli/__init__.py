"""The command `zodiac`, one module per command.

    progress_bar    what is happening, and how far it is
    console         standard output and standard error: text, tables, JSON, progress
    app             the group of commands, exit codes, errors, plugins
    usage           what a wrong command line may have meant
    options         options that several commands share
    output          files that commands write
    standard_input  standard input in place of a file
    rule_files      reads rule files into a program with diagnostics
    query_texts     queries in place, in files and on standard input
    functions       runs Python files that register functions and aggregates
    open_kb         opens the knowledge base of a command, and fills it
    show            prints counts, rows of queries, net changes
    preview         the preview of a dry run
    program_source  the program of rule files or of a store
    sessions        session files: changes and the net changes that they must give
    program         commands on rule files
    store           commands on stores
    explain         commands that explain facts
    packs           commands on packs of rules
    fleet           commands on fleets of devices
    shell           `zodiac shell`, queries and changes at a prompt
    installation    commands on the installation

Other distributions add commands by entry points of the group `zodiacedge.commands`.
"""

from __future__ import annotations

import sys

__all__ = ["BUSY", "INTERRUPTED", "main"]
BUSY = 3
INTERRUPTED = 130


def main() -> None:
    """Run the command line; an interruption while it loads shows no traceback."""
    try:
        from zodiacedge.cli.app import main as run  # noqa: PLC0415 - slow to load, so inside the try

        run()
    except KeyboardInterrupt:
        sys.stderr.write("zodiac: interrupted\n")
        sys.exit(INTERRUPTED)
