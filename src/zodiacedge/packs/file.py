"""Packs and deltas as files: JSON with one rule in a line, byte for byte the same for the same contents.

What a file says is not believed: ids and digests are computed from its rules. Repositories hold files
compressed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem, ZodiacError
from zodiacedge.language.parser import parse_program
from zodiacedge.language.printer import format_rule
from zodiacedge.packs.delta import PackDelta
from zodiacedge.packs.fields import Fields
from zodiacedge.packs.manifest import FIELDS, manifest_of
from zodiacedge.packs.pack import Pack, digest_of, rule_id
from zodiacedge.packs.problems import bad_file
from zodiacedge.util.gzipped import MAGIC, expanded_within

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from zodiacedge.language.ast import Rule

EXTENSION = ".zpack"
DELTA_EXTENSION = ".zdelta"
_PACK = "zodiac pack 1"
_DELTA = "zodiac pack delta 1"
# A file is a text that fits into memory several times.
MOST_BYTES = 64 << 20


def encoded(pack: Pack | PackDelta) -> bytes:
    """Return the bytes of the file of a pack or a delta."""
    if isinstance(pack, Pack):
        document: dict[str, object] = {"format": _PACK, **pack.manifest.to_dict()}
        document["rules"] = _texts(pack.rules)
    else:
        document = {"format": _DELTA, "base": pack.base, "before": pack.before}
        document |= {"manifest": pack.manifest.to_dict(), "removed": list(pack.removed)}
        document["added"] = _texts(pack.added)
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def decoded(data: bytes, name: str) -> Pack | PackDelta:
    """Read the bytes of a file, compressed or not; raise if it is not a pack or a delta as it was built."""
    if len(data) > MOST_BYTES:
        raise bad_file(name, f"it has {len(data):,} bytes, and may have {MOST_BYTES:,}")
    try:
        text = expanded_within(data, MOST_BYTES) if data.startswith(MAGIC) else data
        fields = Fields(json.loads(text))
        kind = fields.text("format")
        if kind == _PACK:
            return _pack(fields, name)
        if kind == _DELTA:
            return _delta(fields, name)
    except (ValueError, RecursionError) as error:
        raise bad_file(name, str(error)) from error
    raise bad_file(name, f"its format is {kind}, and this version reads {_PACK}")


def read_pack(path: str | os.PathLike[str]) -> Pack | PackDelta:
    """Read the file of a pack or a delta."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror or error}"
        raise LoadProblem(Diagnostic("U004", why, "check the name; zodiac pack build makes one")) from error
    return decoded(data, str(path))


def file_name(pack: Pack | PackDelta) -> str:
    """Return the name of the file of a pack or a delta."""
    if isinstance(pack, Pack):
        return f"{pack.name}-{pack.version}{EXTENSION}"
    return f"{pack.name}-{pack.base}-{pack.manifest.version}{DELTA_EXTENSION}"


def _texts(rules: Mapping[str, Rule]) -> list[str]:
    return [format_rule(rule, {}) for rule in rules.values()]


def _pack(fields: Fields, name: str) -> Pack:
    fields.only(("format", "rules", *FIELDS))
    manifest = manifest_of(fields)
    rules = _rules(fields.texts("rules"), name)
    if digest_of({number: rule.label for number, rule in rules.items()}) != manifest.digest:
        raise bad_file(name, "its rules have another digest than it says")
    return Pack(manifest, rules)


def _delta(fields: Fields, name: str) -> PackDelta:
    fields.only(("format", "base", "before", "manifest", "added", "removed"))
    return PackDelta(
        fields.number("base"),
        fields.digest("before"),
        manifest_of(fields.inner("manifest")),
        _rules(fields.texts("added"), name),
        fields.digests("removed"),
    )


def _rules(texts: Iterable[str], name: str) -> dict[str, Rule]:
    """Parse rules, one per text, each with a label of its own."""
    lines = list(texts)
    try:
        program = parse_program("\n".join(lines), name)
        rules = {rule_id(rule): rule for rule in program.rules}
    except ZodiacError as problem:
        raise bad_file(name, f"its rules are refused: {problem.diagnostics[0].message}") from problem
    labels = {rule.label for rule in rules.values()}
    if len(rules) != len(lines) or len(labels) != len(lines) or "" in labels or any("/" in n for n in labels):
        raise bad_file(name, "its rules are not one in a line, each with a label")
    return rules
