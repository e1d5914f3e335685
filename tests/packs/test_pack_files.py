"""Packs from folders, their files, deltas between them, and what is no pack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from packs.making import made, refused, write_source
from zodiacedge.errors import PackProblem
from zodiacedge.packs import file
from zodiacedge.packs.delta import PackDelta, delta_between
from zodiacedge.packs.file import MOST_BYTES, decoded, encoded, file_name, read_pack
from zodiacedge.packs.pack import MOST_FACTS, Pack, digest_of, rule_id
from zodiacedge.packs.source import pack_of_folder
from zodiacedge.util.gzipped import MAGIC, gzipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULES = """
@prefix ex: <http://e/> .
r1: ex:hot(X) :- reading(X, V), ex:limit(L), V > L .
ex:warm(Y) :- ex:hot(Y), not ex:cold(Y) .
ex:limit(80) .
"""
MORE = """
description = "What is too hot"
defines = ["ex:*", "alarm"]
requires = { units = 2 }
[[checks]]
none = "?- ex:hot(X), ex:cold(X) ."
[[checks]]
some = "?- ex:limit(L) ."
"""


def test_the_same_contents_make_the_same_file(tmp_path: Path) -> None:
    one = write_source(tmp_path / "one", RULES, 3, more=MORE)
    other = write_source(tmp_path / "other", "", 3, more=MORE)
    first, *statements = RULES.strip().splitlines()
    for number, statement in enumerate(reversed(statements)):
        text = f"# a comment\n{first}\n{statement.replace(', ', ',   ')}\n"
        (other / "deep").mkdir(exist_ok=True)
        (other / "deep" / f"{number}.rules").write_text(text, encoding="utf-8")
    assert encoded(pack_of_folder(one)) == encoded(pack_of_folder(other))


def test_a_file_is_read_as_it_was_made() -> None:
    pack = made(RULES, 3, more=MORE)
    again = decoded(encoded(pack), "pack")
    assert again == pack
    assert encoded(again) == encoded(pack)
    assert [str(check) for check in pack.manifest.checks] == [
        "no answer to ans(X) :- <http://e/hot>(X), <http://e/cold>(X) .",
        "some answer to ans(L) :- <http://e/limit>(L) .",
    ]
    assert pack.manifest.requires == {"units": 2}
    assert file_name(pack) == "diagnosis-3.zpack"


def test_ids_and_digests_do_not_depend_on_how_rules_are_written() -> None:
    pack = made("r1: p(X) :- q(X, Y), r(Y) .")
    other = made("r1: p(A) :- r(B), q(A, B) .")
    assert pack.rules.keys() == other.rules.keys()
    assert pack.manifest.digest == other.manifest.digest
    assert made("r2: p(X) :- q(X, Y), r(Y) .").manifest.digest != pack.manifest.digest


def test_rules_and_facts_without_a_label_get_one() -> None:
    pack = made("p(X) :- q(X) .  p(a) .  r1: s(X) :- p(X) .")
    labels = [rule.label for rule in pack.rules.values()]
    assert [label[0] for label in labels] == ["f", "r", "r"]
    assert labels[1:] == ["r1", f"r{rule_id(pack.rules[labels_of(pack)[labels[2]]])[:8]}"]


def labels_of(pack: Pack) -> dict[str, str]:
    return {label: number for number, label in pack.labels.items()}


def test_namespaces_are_the_heads_if_none_are_named() -> None:
    assert made("p(X) :- q(X) .  C(a) .").manifest.defines == ("C", "p")


def test_a_delta_turns_one_version_into_the_next() -> None:
    before = made("r1: p(X) :- q(X) .  r2: p(X) :- r(X) .  p(a) .")
    after = made("one: p(X) :- q(X) .  r3: p(X) :- s(X) .  p(a) .", 4)
    delta = delta_between(before, after)
    assert sorted(rule.label for rule in delta.added.values()) == ["one", "r3"]
    assert len(delta.removed) == 1
    again = decoded(encoded(delta), "delta")
    assert isinstance(again, PackDelta)
    assert again == delta
    assert again.applied(before) == after
    assert file_name(delta) == "diagnosis-1-4.zdelta"


def test_a_delta_fits_no_other_pack() -> None:
    before, after = made("p(X) :- q(X) ."), made("p(X) :- r(X) .", 2)
    delta = delta_between(before, after)
    with refused("P009"):
        delta.applied(after)
    with refused("P009"):
        delta.applied(made("p(X) :- z(X) ."))
    with refused("P009"):
        delta_between(before, made("p(X) :- q(X) .", name="other"))


def test_a_small_change_of_a_large_pack_is_a_small_delta() -> None:
    rules = [f"r{n}: p{n}(X) :- q{n}(X) ." for n in range(300)]
    before = made("\n".join(rules), more='defines = ["p*"]')
    rules[7] = "r7: p7(X) :- other(X) ."
    delta = delta_between(before, made("\n".join(rules), 2, more='defines = ["p*"]'))
    assert len(encoded(delta)) < 1_000


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("name = 'a b'", "is no name of a pack"),
        ("version = 0", "numbered from 1"),
        ("version = 'one'", "is not a whole number"),
        ("version = true", "is not a whole number"),
        ("versoin = 1", "'versoin', which means nothing"),
        ("defines = 'p'", "not a list of texts"),
        ("requires = { units = -1 }", "not a whole number"),
        ("checks = [{ none = '?- p(X' }]", "a check makes no sense"),
        ("checks = [{ none = '?- not p(X), not q(X) .' }]", "a check makes no sense"),
        ("checks = [{ none = '?- p(X) .', some = '?- p(X) .' }]", "a check is none"),
        ("checks = [{ none = '?- AGGREGATE(p(X)) WITH COUNT(X) AS N .' }]", "has no AGGREGATE"),
        ("name = ", "is not TOML"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path: Path, toml: str, says: str) -> None:
    key = toml.partition(" ")[0]
    lines = {"name": "name = 'diagnosis'", "version": "version = 1"} | {key: toml}
    (tmp_path / "pack.toml").write_text("\n".join(lines.values()), encoding="utf-8")
    (tmp_path / "a.rules").write_text("p(X) :- q(X) .", encoding="utf-8")
    with refused("P001") as messages:
        pack_of_folder(tmp_path)
    assert says in messages[0]


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("p(X) :- q(Y) .", "C001"),
        ("p(X) :- q(X), not p(X) .", "G001"),
        ("r1: p(X) :- q(X) .  r1: p(X) :- r(X) .", "C010"),
        ("r1: p(X) :- q(X) .  r2: p(Y) :- q(Y) .", "W002"),
        ("a/r1: p(X) :- q(X) .", "P001"),
        ("p(X) :- q(X) ", "L001"),
    ],
)
def test_rules_that_are_no_program_make_no_pack(rules: str, code: str) -> None:
    with refused(code):
        made(rules)


def test_a_folder_without_a_manifest_makes_no_pack(tmp_path: Path) -> None:
    with refused("P001"):
        pack_of_folder(tmp_path)


def test_heads_are_in_the_namespaces() -> None:
    with refused("P003", "P003") as messages:
        made("p(X) :- q(X) .  s(X) :- q(X) .  t(a) .", more='defines = ["t"]')
    assert sorted(message.split()[5] for message in messages) == ["p,", "s,"]


def test_a_pack_states_few_facts() -> None:
    with refused("P014"):
        made(" ".join(f"p({n}) ." for n in range(MOST_FACTS + 1)))


def changed(change: Callable[[dict[str, object]], object]) -> bytes:
    document = json.loads(encoded(made(RULES, more=MORE)))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"format": "zodiac pack 9"}',
        changed(lambda d: d.update(digest="0" * 64)),
        changed(lambda d: d.update(digest=7)),
        changed(lambda d: d.update(version=0)),
        changed(lambda d: d.update(name="../../etc")),
        changed(lambda d: d.update(more=1)),
        changed(lambda d: d.pop("rules")),
        changed(lambda d: d["rules"].pop()),  # type: ignore[attr-defined]
        changed(lambda d: d["rules"].append("evil: p(X) :- q(X) .")),  # type: ignore[attr-defined]
        changed(lambda d: d["rules"].append("not a rule")),  # type: ignore[attr-defined]
        changed(lambda d: d["rules"].append("p(a) .")),  # type: ignore[attr-defined]
        changed(lambda d: d.update(rules=[" ".join(d["rules"])])),  # type: ignore[arg-type]
        changed(lambda d: d.update(checks=[{"none": "?- p(X"}])),
        changed(lambda d: d.update(requires={"units": "2"})),
        changed(lambda d: d.update(language=None)),
    ],
)
def test_what_is_no_pack_is_refused(data: bytes) -> None:
    with pytest.raises(PackProblem) as problem:
        decoded(data, "pack")
    assert problem.value.diagnostics[0].code == "P002"


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    with refused("P002"):
        decoded(b" " * (MOST_BYTES + 1), "pack")


def test_a_compressed_file_is_read_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = made("p(X) :- q(X) .")
    data = gzipped(encoded(pack))
    assert decoded(data, "x") == pack
    for bad in (data[:-1], data + b"x", MAGIC, gzipped(data)):
        with refused("P002"):
            decoded(bad, "x")
    monkeypatch.setattr(file, "MOST_BYTES", len(encoded(pack)))
    assert decoded(data, "x") == pack
    monkeypatch.setattr(file, "MOST_BYTES", len(encoded(pack)) - 1)
    with refused("P002") as messages:
        decoded(data, "x")
    assert "when it is expanded" in messages[0]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with refused("U004"):
        read_pack(tmp_path / "no.zpack")


def test_a_digest_is_of_a_set() -> None:
    assert digest_of({"a": "1", "b": "2"}) == digest_of({"b": "2", "a": "1"})
