"""Makes a pack from a folder: `pack.toml`, and the rules and facts of its `.rules` files.

The same contents make the same pack, whatever the files are called and however the rules are written.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.errors import CheckProblem, Diagnostic, PackProblem, SyntaxProblem
from zodiacedge.graph import HyperGraph
from zodiacedge.io.text import read_text
from zodiacedge.language.ast import Aggregate, Program
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.checks import Host, Subject, check, check_query
from zodiacedge.language.names import full_name
from zodiacedge.language.parser import read_program
from zodiacedge.language.safety import resolve
from zodiacedge.language.vocabulary import LANGUAGE_VERSION
from zodiacedge.packs.fields import Fields
from zodiacedge.packs.manifest import Check, Manifest, check_of, checked_name, outside_namespaces, windows_in
from zodiacedge.packs.pack import called_by, pack_of
from zodiacedge.packs.problems import bad_source

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from zodiacedge.language.ast import Atom, Rule
    from zodiacedge.packs.pack import Pack

MANIFEST = "pack.toml"
_RULES = "*.rules"
_FIELDS = (
    "name",
    "version",
    "language",
    "description",
    "defines",
    "shares",
    "requires",
    "checks",
    "prefixes",
)
_STAR = "*"


def pack_of_folder(folder: str | os.PathLike[str]) -> Pack:
    """Make the pack of a folder, or raise with all that is wrong."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise bad_source(
            str(folder), f"holds no {MANIFEST}", "name the folder of a pack; docs/packs.md has one"
        )
    program = _program(sorted(folder.rglob(_RULES)))
    _check_rules(program.rules, program)
    try:
        fields = Fields(tomllib.loads(read_text(path)), MANIFEST)
        manifest = _manifest(fields, program)
    except tomllib.TOMLDecodeError as error:
        raise bad_source(str(path), f"is not TOML: {error}", "correct it") from error
    except ValueError as error:
        raise bad_source(str(path), str(error), "docs/packs.md lists the fields") from error
    pack = pack_of(manifest, program.rules, program.facts)
    rules = pack.rules.values()
    findings = [*outside_namespaces(manifest, rules), *windows_in(manifest, rules)]
    if findings:
        raise PackProblem(findings)
    return pack


def _program(files: Iterable[Path]) -> Program:
    rules: list[Rule] = []
    facts: list[Atom] = []
    prefixes: dict[str, str] = {}
    findings: list[Diagnostic] = []
    for file in files:
        program, found = read_program(read_text(file), str(file))
        rules += program.rules
        facts += program.facts
        prefixes |= dict(program.prefixes)
        findings += found
    if findings:
        raise SyntaxProblem(findings)
    return Program(tuple(rules), tuple(facts), tuple(prefixes.items()))


def _check_rules(rules: tuple[Rule, ...], program: Program) -> None:
    """Raise if the rules and facts alone are no program; what the host registers is not known."""
    found = check(Subject(rules, program.facts, host=Host()))
    # A rule has one label in a pack, so one that is written twice is a mistake.
    findings = [d for d in found if d.severity == "error" or d.code == "W002"]
    findings += [
        Diagnostic("P001", f"the label {rule.label} names a rule of a pack", "leave out the slash", rule.span)
        for rule in rules
        if "/" in rule.label
    ]
    if findings:
        raise CheckProblem(findings)
    HyperGraph().update({rule_key(rule): rule for rule in map(resolve, rules)})


def _manifest(fields: Fields, program: Program) -> Manifest:
    fields.only(_FIELDS)
    prefixes = dict(program.prefixes) | fields.inner("prefixes").named_texts()
    heads = {rule.head.predicate.name for rule in program.rules}
    heads |= {fact.predicate.name for fact in program.facts}
    requires = fields.inner("requires").named_numbers()
    for name in requires:
        checked_name(name)
    version = fields.number("version")
    if not version:
        raise ValueError("versions of packs are numbered from 1")
    functions, aggregates = called_by(program.rules)
    return Manifest(
        checked_name(fields.text("name")),
        version,
        tuple(sorted(_spaces(fields.texts("defines"), prefixes) or heads)),
        tuple(sorted(_spaces(fields.texts("shares"), prefixes))),
        dict(sorted(requires.items())),
        functions,
        aggregates,
        tuple(_checked(check, prefixes) for check in fields.documents("checks")),
        fields.number("language", LANGUAGE_VERSION),
        fields.text("description", ""),
        dict(sorted(prefixes.items())),
    )


def _spaces(names: Iterable[str], prefixes: Mapping[str, str]) -> set[str]:
    return {
        full_name(name.removesuffix(_STAR), prefixes) + _STAR
        if name.endswith(_STAR)
        else full_name(name, prefixes)
        for name in names
    }


def _checked(fields: Fields, prefixes: Mapping[str, str]) -> Check:
    made = check_of(fields, prefixes)
    query = made.parsed()
    errors = [d for d in check_query(query, Host()) if d.severity == "error"]
    if any(isinstance(conjunct, Aggregate) for conjunct in query.body):
        raise ValueError("a check has no AGGREGATE: let a rule of the pack compute it")
    if errors:
        raise ValueError(f"a check makes no sense: {errors[0].message}")
    return made
