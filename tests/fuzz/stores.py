"""The folder of a store: harmed as a disk harms it, and by somebody who makes all checksums fit again."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from datetime import timedelta
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

import zodiacedge as ze
from fuzz.mutate import NUMBERS, harmed, harmed_text
from zodiacedge.errors import ZodiacError
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.log import record_format
from zodiacedge.store.table.commit_info import checked_document

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_RULES = """
    @prefix ex: <http://e/> .
    r1: path(X, Y) :- edge(X, Y) .
    r2: path(X, Z) :- path(X, Y), edge(Y, Z) .
    r3: reach(X, N) :- AGGREGATE(path(X, Y)) ON X WITH COUNT(Y) AS N .
    r4: rdf:type(X, C) :- kind(X, C) .
    r5: never(X) :- nobody(X, "c") .
    edge(a, b) .  edge(b, c) .  kind(a, ex:turbine) .  value(a, 5) .  value(a, "fünf"@de) .  value(a, 5.5e0) .
"""
_LENGTH = struct.Struct("<I")


def _seen(kb: ze.KnowledgeBase) -> tuple[object, ...]:
    return kb.version, kb.facts(), kb.explicit, kb.rules, tuple(sorted(kb.prefixes.items()))


@cache
def _sources(folder: Path) -> tuple[tuple[Path, frozenset[tuple[object, ...]]], ...]:
    """Make stores, each with all that one may see in it."""
    found = []
    for name in ("flushed", "logged", "vacuumed"):
        place = folder / f"whole-{name}"
        states = set()
        with ze.open(place, create=True) as kb:
            states.add(_seen(kb))
            with kb.change() as c:
                c.add_rules(_RULES)
            states.add(_seen(kb))
        kb = ze.open(place)
        with kb.change("more") as c:
            c.add_facts("edge(c, d) .")
            c.remove_facts("edge(a, b) .")
        states.add(_seen(kb))
        if name == "logged":
            # As a killed process leaves it.
            assert kb.store is not None
            kb.store.close()
        else:
            if name == "vacuumed":
                kb.vacuum(timedelta(0))
            kb.close()
        found.append((place, frozenset(states)))
    return tuple(found)


def _copied(dice: Random, folder: Path) -> tuple[Path, frozenset[tuple[object, ...]]]:
    source, states = dice.choice(_sources(folder))
    place = folder / "farm"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    return place, states


def store(dice: Random, folder: Path) -> None:
    """Harm files of a store as a disk does; what is seen then is some version as it was, if anything is."""
    place, states = _copied(dice, folder)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for path in dice.sample(files, dice.choice((1, 1, 1, 2, 3))):
        match dice.randrange(8):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(dice.choice(files).read_bytes() if dice.random() < 0.5 else b"")
            case _:
                path.write_bytes(harmed(dice, path.read_bytes()))
        files = [one for one in files if one.exists()]
    _look(dice, place, states)


def _look(dice: Random, place: Path, states: frozenset[tuple[object, ...]] | None) -> None:
    options = dice.choice(({"read_only": True}, {"read_only": True}, {}, {"at": 1}, {"at": 2}))
    try:
        with ze.open(place, **options) as kb:
            seen = _seen(kb)
            if states is None:
                kb.verify()
            if kb.store.writable:
                with kb.change() as c:
                    c.add_facts("edge(x, y) .")
            list(kb.log())
    except ZodiacError as problem:
        for one in problem.diagnostics:
            assert one.code
            str(one)
        return
    assert states is None or seen in states, f"a version that never was: {seen}"


def forged(dice: Random, folder: Path) -> None:
    """Harm a store and make its checksums fit: anything may be in it, but nothing may break or leave it."""
    place, _ = _copied(dice, folder)
    around = {path.name for path in folder.iterdir()}
    dice.choice((_forge_record, _forge_part, _forge_commit))(dice, place)
    _look(dice, place, None)
    assert {path.name for path in folder.iterdir()} == around


def _forge_record(dice: Random, place: Path) -> None:
    files = record_format.files(LocalLocation(place))
    if not files:
        return
    records = [
        record.payload for record in record_format.read_files(LocalLocation(place), files[-1:], ends=True)
    ]
    path = place / files[-1][1]
    chosen = dice.randrange(len(records))
    records[chosen] = _forged_payload(dice, records[chosen])
    data = path.read_bytes()[: record_format.HEADER_BYTES]
    chain = data[-16:]
    for payload in records:
        chain = record_format.chained(chain, payload)
        length = struct.pack("<Q", len(payload))
        data += length + struct.pack("<I", zlib.crc32(length)) + chain + payload + record_format.END
    path.write_bytes(data)


def _forged_payload(dice: Random, payload: bytes) -> bytes:
    if dice.random() < 0.3:
        return harmed(dice, payload)
    (length,) = _LENGTH.unpack_from(payload)
    document = json.loads(payload[_LENGTH.size : _LENGTH.size + length])
    facts = payload[_LENGTH.size + length :]
    if dice.random() < 0.5:
        facts = harmed(dice, facts)
    else:
        document = _forged_value(dice, document)
    text = json.dumps(document).encode()
    return _LENGTH.pack(len(text)) + text + facts


def _forged_value(dice: Random, value: object) -> object:
    """Return a JSON value with one thing in it that is something else."""
    match value:
        case dict() if value and dice.random() < 0.9:
            key = dice.choice(sorted(value))
            if dice.random() < 0.1:
                return {name: one for name, one in value.items() if name != key}
            return value | {key: _forged_value(dice, value[key])}
        case list() if value and dice.random() < 0.8:
            at = dice.randrange(len(value))
            return [*value[:at], _forged_value(dice, value[at]), *value[at + 1 :]]
        case str() if dice.random() < 0.8:
            return dice.choice((harmed_text(dice, value), "../" * 9 + "etc/passwd", "", "x" * 5000))
        case _:
            return dice.choice((None, True, -1, 1.5, "x", [], {}, [[]], *NUMBERS))


def _commits(place: Path) -> list[Path]:
    return sorted((place / "_delta_log").glob("*.json"))


def _forge_part(dice: Random, place: Path) -> None:
    commit = _commits(place)[-1]
    text = commit.read_text()
    named = [path for path in sorted(place.glob("relation=*/segment=*/*.parquet")) if path.name in text]
    if not named:
        return
    path = dice.choice(named)
    data = harmed(dice, path.read_bytes())
    name = f"{sha256(data).hexdigest()}.parquet"
    path.with_name(name).write_bytes(data)
    commit.write_text(text.replace(path.name, name))
    _sign(place, commit, {path.name: name})


def _forge_commit(dice: Random, place: Path) -> None:
    commit = _commits(place)[-1]
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        info = line.get("commitInfo")
        if info and "zodiac" in info:
            forged = _forged_value(dice, json.loads(info["zodiac"]))
            info["zodiac"] = json.dumps(checked_document(forged) if isinstance(forged, dict) else forged)
    commit.write_text("\n".join(map(json.dumps, lines)))


def _sign(place: Path, commit: Path, renamed: dict[str, str]) -> None:
    """Make the digest of a commit fit the files that it names."""
    from deltalake import DeltaTable  # noqa: PLC0415 - as the store loads it

    del renamed
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        info = line.get("commitInfo")
        if info and "zodiac" in info:
            paths = sorted(DeltaTable(str(place)).get_add_actions(flatten=True).column("path").to_pylist())
            document = json.loads(info["zodiac"])
            document["digest"] = sha256("\n".join(paths).encode()).hexdigest()
            info["zodiac"] = json.dumps(checked_document(document))
    commit.write_text("\n".join(map(json.dumps, lines)))
