"""`zodiac pack show`: what a pack or a delta says and holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.options import FILE
from zodiacedge.language.printer import abbreviate, format_atom, format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES
from zodiacedge.packs.file import read_pack
from zodiacedge.packs.pack import Pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge.language.ast import Rule
    from zodiacedge.packs.manifest import Manifest


@click.command("show")
@click.argument("file", type=FILE, metavar="FILE")
@common
def show(console: Console, *, file: str) -> None:
    r"""Show what a pack, or a delta of one, says about itself, and its rules.

    \b
    Example:
      zodiac pack show diagnosis-8.zpack
    """
    pack = read_pack(file)
    manifest = pack.manifest
    prefixes = {**DEFAULT_PREFIXES, **manifest.prefixes}
    console.text(f"{'pack' if isinstance(pack, Pack) else 'delta'} {pack}")
    for line in described(manifest, prefixes):
        console.text(line)
    if isinstance(pack, Pack):
        for rule in pack.rules.values():
            console.text(written(rule, prefixes))
    else:
        for rule in pack.added.values():
            console.text(f"+ {written(rule, prefixes)}")
        for number in pack.removed:
            console.text(f"- rule {number}")
    if console.as_json:
        rules = pack.rules if isinstance(pack, Pack) else pack.added
        document: dict[str, object] = {"rules": {n: format_rule(rule, {}) for n, rule in rules.items()}}
        document |= {} if isinstance(pack, Pack) else {"base": pack.base, "removed": list(pack.removed)}
        console.json(manifest.to_dict() | document)


def described(manifest: Manifest, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield lines with what a pack says about itself."""
    if manifest.description:
        yield manifest.description
    for word, names in (("defines", manifest.defines), ("shares", manifest.shares)):
        if names:
            yield f"{word}: {', '.join(_short(name, prefixes) for name in names)}"
    if manifest.requires:
        yield f"requires: {', '.join(f'{name} {least}' for name, least in manifest.requires.items())}"
    for word, names in (("functions", manifest.functions), ("aggregates", manifest.aggregates)):
        if names:
            yield f"{word}: {', '.join(names)}"
    for check in manifest.checks:
        yield f"check: {abbreviate(str(check), prefixes)}"
    yield f"digest: {manifest.digest}"


def written(rule: Rule, prefixes: Mapping[str, str]) -> str:
    """Return a rule of a pack as it is written; a fact as a fact, behind its label."""
    return (
        f"{rule.label}: {format_atom(rule.head, prefixes)} ."
        if rule.states_fact
        else format_rule(rule, prefixes)
    )


def _short(namespace: str, prefixes: Mapping[str, str]) -> str:
    """Return a namespace with a prefix, if one fits; nothing may be left of it but a star."""
    fitting = (
        f"{p}:{namespace.removeprefix(base)}" for p, base in prefixes.items() if namespace.startswith(base)
    )
    return next(fitting, namespace)
