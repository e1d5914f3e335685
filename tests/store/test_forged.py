"""A store from elsewhere, whose checksums all fit: it is read or refused, and nothing in it is ever run."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zlib
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import zodiacedge as ze
from store.conftest import code
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.log import record_format
from zodiacedge.store.table.commit_info import checked_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def forge_commit(store: Path, forge: Callable[[dict[str, object]], None], *, sign: bool = True) -> None:
    """Change what the last commit says, and make its checksum fit."""
    path = max((store / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            document = json.loads(line["commitInfo"]["zodiac"])
            forge(document)
            line["commitInfo"]["zodiac"] = json.dumps(checked_document(document) if sign else document)
    path.write_text("\n".join(map(json.dumps, lines)))


def forge_part(store: Path, relation: str, data: bytes) -> None:
    """Put other bytes in the place of a part, under the name that fits them."""
    (old,) = store.glob(f"relation={relation}-*/segment=explicit/*.parquet")
    new = old.with_name(f"{sha256(data).hexdigest()}.parquet")
    new.write_bytes(data)
    path = max((store / "_delta_log").glob("*.json"))
    path.write_text(path.read_text().replace(old.name, new.name))

    def digest(document: dict[str, object]) -> None:
        named = pa.table(DeltaTable(str(store)).get_add_actions(flatten=True)).column("path")
        document["digest"] = sha256("\n".join(sorted(named.to_pylist())).encode()).hexdigest()

    forge_commit(store, digest)


def forge_record(store: Path, forge: Callable[[bytes], bytes]) -> None:
    """Change the last record of the log, and make its checksums fit."""
    place = LocalLocation(store)
    records = list(record_format.read_files(place, record_format.files(place)[-1:], ends=True))
    last, path = records[-1], store / records[-1].file
    data = path.read_bytes()
    chain = data[record_format.HEADER_BYTES - 16 : record_format.HEADER_BYTES]
    for record in records[:-1]:
        chain = record_format.chained(chain, record.payload)
    payload = forge(last.payload)
    length = struct.pack("<Q", len(payload))
    front = length + struct.pack("<I", zlib.crc32(length)) + record_format.chained(chain, payload)
    path.write_bytes(data[: last.offset] + front + payload + record_format.END)


@pytest.fixture
def single(place: Path) -> Path:
    """A store with one part of explicit facts, in one commit."""
    with ze.open(place, create=True) as kb, kb.change() as c:
        c.add_rules("r1: q(X) :- p(X, _) .  r2: s(X) :- nobody(X, c) .")
        c.add_facts("@prefix ex: <http://e/> .  p(a, b) .")
    return place


@pytest.mark.parametrize("field", ["rules", "prefixes", "version", "explicit", "chain", "moment", "seconds"])
def test_a_flipped_bit_in_what_a_commit_says_is_found(single: Path, field: str) -> None:
    def flip(document: dict[str, object]) -> None:
        text = json.dumps(document[field])
        at = next(n for n in range(len(text) // 2, len(text)) if text[n].isalnum())
        digit = text[at].isdigit()
        other = ("2" if text[at] == "1" else "1") if digit else "x"
        document[field] = json.loads(text[:at] + other + text[at + 1 :])

    forge_commit(single, flip, sign=False)
    with pytest.raises(ze.ZodiacError, match="does not fit its checksum") as caught:
        ze.open(single)
    assert code(caught.value) == "D005"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("chain", "xyz"),
        ("chain", "00"),
        ("moment", "yesterday"),
        ("version", -1),
        ("rules", ["q(X) :- p(X"]),
        ("rules", ["q(X) :- p(Y) ."]),
        ("rules", 5),
        ("prefixes", []),
        ("seconds", {"x": "y"}),
        ("dropped", {"x": 1}),
        ("explicit", 9),
        ("digest", "0"),
    ],
)
def test_a_commit_that_says_nonsense_is_refused(single: Path, field: str, value: object) -> None:
    forge_commit(single, lambda document: document.update({field: value}))
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(single)
    assert code(caught.value) in {"D005", "D010"}


def parquet(**columns: object) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), out)
    found: bytes = out.getvalue().to_pybytes()
    return found


def row(**changed: object) -> dict[str, list[object]]:
    whole: dict[str, object] = {"kind": "explicit", "predicate": "p", "arity": pa.scalar(2, pa.int32())}
    whole |= {"a0": "a", "a0_type": "iri", "a1": "b", "a1_type": "iri"}
    return {name: [value] for name, value in (whole | changed).items()}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"PAR1" + bytes(100) + b"PAR1",
        pickle.dumps({"a": 1}),
        parquet(x=[1]),
        parquet(**row(predicate="other")),
        parquet(**row(arity=pa.scalar(3, pa.int32()))),
        parquet(**row(arity=pa.scalar(-1, pa.int32()))),
        parquet(**row(kind="derived")),
        parquet(**row(kind=None)),
        parquet(**row(a0=None)),
        parquet(**row(a1_type="integer")),
        parquet(**row(a1_type="nothing")),
        parquet(**{name: values * 2 for name, values in row().items()}),
    ],
    ids=range(14),
)
def test_a_part_that_is_none_is_refused(single: Path, data: bytes) -> None:
    forge_part(single, "p", data)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(single)
    assert code(caught.value) in {"D005", "D010"}


@pytest.mark.parametrize(
    "forge",
    [
        lambda _: b"",
        lambda _: b"\xff\xff\xff\xff{}",
        lambda _: struct.pack("<I", 2) + b"[]",
        lambda _: struct.pack("<I", 200_000) + b"[" * 200_000,
        lambda payload: payload[:-40],
        lambda payload: payload.replace(b"edge", b"\xff\xff\xff\xff"),
        lambda payload: payload[:-60] + bytes(60),
        lambda payload: payload.replace(b'"bytes": ', b'"bytes":9'),
        lambda payload: payload.replace(b'"arity": 2', b'"arity": 9'),
        lambda payload: payload.replace(b'"version": 5', b'"version": 4'),
        lambda _: pickle.dumps({"a": 1}),
    ],
    ids=range(11),
)
def test_a_record_that_is_none_is_refused(logged: Path, forge: Callable[[bytes], bytes]) -> None:
    forge_record(logged, forge)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(logged)
    assert code(caught.value) in {"D004", "D010"}
    with ze.open(logged, at=4) as kb:
        assert kb.verify().ok


@pytest.mark.parametrize(
    "name", ["../../secret.parquet", "/etc/passwd", "", 5, f"{'0' * 64}.parquet", "x.parquet"]
)
def test_a_record_that_names_a_file_elsewhere_is_refused(logged: Path, name: object) -> None:
    secret = parquet(**row(predicate="edge"))
    (logged.parent / "secret.parquet").write_bytes(secret)
    (logged / "_wal" / "x.parquet").write_bytes(secret)

    def forge(payload: bytes) -> bytes:
        (length,) = struct.unpack_from("<I", payload)
        document = json.loads(payload[4 : 4 + length])
        for one in document["facts"]:
            one["file"] = name
        text = json.dumps(document).encode()
        return struct.pack("<I", len(text)) + text + payload[4 + length :]

    forge_record(logged, forge)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(logged)
    assert code(caught.value) == "D004"


class Trap:
    """Whoever unpickles this runs a command."""

    def __init__(self, told: Path) -> None:
        self.told = told

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self.told}'",)


def test_nothing_is_read_as_pickle(logged: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    trap = pickle.dumps(Trap(told))
    for path in sorted(one for one in logged.rglob("*") if one.is_file()):
        whole = path.read_bytes()
        path.write_bytes(trap)
        try:
            with ze.open(logged, read_only=True):
                pass
        except ze.ZodiacError:
            pass
        path.write_bytes(whole)
    forge_record(logged, lambda _: trap)
    with pytest.raises(ze.ZodiacError):
        ze.open(logged)
    assert not told.exists()
    # The trap is one.
    pickle.loads(trap)  # noqa: S301
    assert told.exists()


def noting(calls: list[object]) -> Callable[[object], object]:
    """Return a function that takes note of its calls."""

    def call(value: object) -> object:
        calls.append(value)
        return value

    return call


@pytest.mark.parametrize("name", ["eval", "exec", "open", "system", "__import__", "getattr"])
def test_rules_from_elsewhere_call_only_what_the_host_registered(place: Path, name: str) -> None:
    pack = f"q(Y) :- p(X, _), Y := func:{name}(X) ."
    theirs: list[object] = []
    ours: list[object] = []
    with ze.open(place, create=True) as kb:
        with pytest.raises(ze.ZodiacError) as caught, kb.change() as c:
            c.add_rules(pack)
        assert code(caught.value) == "C009"
        kb.function(noting(theirs), name=name)
        with kb.change() as c:
            c.add_rules(pack)
            c.add_facts("p(1, 2) .")
    assert theirs == [1]
    with ze.open(place) as kb:
        # What was derived can be seen; what would call anything is refused.
        assert list(kb.query("?- q(X) .")) == [(1,)]
        with pytest.raises(ze.ZodiacError) as caught, kb.change() as c:
            c.add_facts("p(3, 4) .")
        assert code(caught.value) == "D013"
        kb.function(noting(ours), name=name)
        with kb.change() as c:
            c.add_facts("p(5, 6) .")
    assert theirs == [1]
    assert 5 in ours


def test_nothing_that_names_a_file_leaves_the_folder(place: Path) -> None:
    bad = "../../../../tmp/evil"
    text = f"""
        "{bad}x": q(X) :- p(X, _) .
    """
    with ze.open(place, create=True) as kb:
        with pytest.raises(ze.ZodiacError), kb.change() as c:
            # A label is a plain name.
            c.add_rules(text)
        with kb.change(bad) as c:
            c.add_rules(
                f"@prefix ex: <{bad}/> .  <{bad}>(X) :- <{bad}/..>(X, _) .  r-1: ex:q(X) :- ex:p(X, _) ."
            )
            c.add_facts(
                [(f"{bad}/..", ze.iri(bad), bad), (f"{bad}/p", bad, bad), (bad, ze.iri("/etc/passwd"))]
            )
            c.add_facts([("a/b:c*d?e", bad, bad, bad), ("nul", 1, 2), ("..", 1, 2)])
        facts = kb.facts()
    with ze.open(place) as kb:
        assert kb.facts() == facts
    inside = [path.relative_to(place) for path in place.rglob("*")]
    assert all(".." not in path.parts for path in inside)
    assert {path.name for path in place.parent.iterdir()} == {place.name}


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_links_that_lead_out_of_the_folder_give_nothing_away(single: Path, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (old,) = single.glob("relation=p-*/segment=explicit/*.parquet")
    if kind == "link":
        (secret / "file").write_bytes(b"what others may not see")
        old.unlink()
        old.symlink_to(secret / "file")
    else:
        old.rename(secret / old.name)
        old.symlink_to(secret)
    with pytest.raises(ze.ZodiacError) as caught:
        ze.open(single)
    assert code(caught.value) == "D022"
    assert "what others" not in str(caught.value)
