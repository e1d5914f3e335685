"""`zodiac check`: parse and check; all diagnostics at once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.console import diagnostics_document
from zodiacedge.cli.open_kb import in_memory, read_files
from zodiacedge.cli.options import FILE, DataOptions, EngineOptions, data_options, ignore_option
from zodiacedge.cli.rule_files import check_rules, parse_rules
from zodiacedge.cli.show import show_bad_lines
from zodiacedge.errors import counted
from zodiacedge.kb.diagnose import LoadedFacts
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.io import LoadReport
    from zodiacedge.language.ast import Program


@click.command("check")
@click.argument("rules", nargs=-1, required=True, type=FILE, metavar="RULES...")
@data_options
@common
@ignore_option
def command(console: Console, rules: tuple[str, ...], data: DataOptions) -> None:
    r"""Parse and check rule files as one program.

    RULES are files, folders or globs; - is standard input. Every error and warning is reported in one run;
    the exit code is 1 if any is an error. With --facts the rules are compared with the predicates and values
    of the data; nothing is evaluated. Warnings are silenced by `--ignore`, or by comments in the files:
    `# lint: ignore W020` on or above a rule, `# lint: ignore-file W020` anywhere.

    \b
    Example:
      zodiac check farm.rules
      zodiac check rules/ --json
      zodiac check farm.rules --facts readings.csv
      zodiac check farm.rules --ignore W020
    """
    parsed = parse_rules(rules)
    program = parsed.program
    console.prefixes = {**DEFAULT_PREFIXES, **dict(program.prefixes)}
    loads: list[LoadReport] = []
    facts: LoadedFacts | None = None
    if data.files:
        facts, load = _loaded(console, program, data)
        loads.append(load)
        show_bad_lines(console, loads)
    checked = check_rules(parsed, facts)
    findings = console.heard((*(warning for load in loads for warning in load.warnings), *checked.findings))
    console.findings(findings)
    errors = len(checked.errors)
    warnings = len(findings) - errors
    console.text(
        f"{counted(len(parsed.files), 'file')}, {counted(len(program.rules), 'rule')}, "
        f"{counted(len(program.facts), 'fact')}: "
        f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    )
    if console.as_json:
        console.json(
            {
                "files": [file.name for file in parsed.files],
                "rules": len(program.rules),
                "facts": len(program.facts),
                "hyper_nodes": len(checked.rules.graph),
                **diagnostics_document(findings),
                **({"loads": [load.to_dict() for load in loads]} if loads else {}),
            }
        )
    if errors:
        sys.exit(1)


def _loaded(console: Console, program: Program, data: DataOptions) -> tuple[LoadedFacts, LoadReport]:
    """Return the data that a program will run on, and the report of their load."""
    kb = in_memory(console, EngineOptions())
    kb.add_prefixes(program.prefixes)
    change = kb.change()
    with console.progress():
        read_files(console, change.load, data.files, data)
    [batch], [report] = change.collected().loaded, change.loads
    delta = kb.state.effective_delta(batch, kb.state.batch())
    return LoadedFacts(batch.predicates(), delta.holds), report
