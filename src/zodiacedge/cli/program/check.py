"""`zodiac check`: parse and check; all diagnostics at once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import diagnostics_document, many
from zodiacedge.cli.options import FILE, ignore_option
from zodiacedge.cli.rule_files import read_rules

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console


@click.command("check")
@click.argument("rules", nargs=-1, required=True, type=FILE, metavar="RULES...")
@common
@ignore_option
def command(console: Console, rules: tuple[str, ...]) -> None:
    r"""Parse and check rule files as one program.

    RULES are files, folders or globs; - is standard input. Every error and warning is reported in one run;
    the exit code is 1 if any is an error. Warnings are silenced by `--ignore`, or by comments in the files:
    `# lint: ignore W020` on or above a rule, `# lint: ignore-file W020` anywhere.

    \b
    Example:
      zodiac check farm.rules
      zodiac check rules/ --json
      zodiac check farm.rules --ignore W020
    """
    reading = read_rules(rules)
    findings = console.heard(reading.findings)
    console.findings(findings)
    errors = len(reading.errors)
    warnings = len(findings) - errors
    console.text(
        f"{many(len(reading.files), 'file')}, {many(len(reading.program.rules), 'rule')}, "
        f"{many(len(reading.program.facts), 'fact')}: {many(errors, 'error')}, {many(warnings, 'warning')}"
    )
    if console.as_json:
        console.json(
            {
                "files": [file.name for file in reading.files],
                "rules": len(reading.program.rules),
                "facts": len(reading.program.facts),
                "hyper_nodes": len(reading.graph),
                **diagnostics_document(findings),
            }
        )
    if errors:
        sys.exit(1)
