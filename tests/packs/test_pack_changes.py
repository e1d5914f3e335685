"""Packs in a knowledge base: owners of rules, upgrades, what is refused, stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from packs.making import made, refused
from zodiacedge.errors import StratificationProblem
from zodiacedge.language.printer import format_rule
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.file import encoded
from zodiacedge.packs.owners import packs_of

if TYPE_CHECKING:
    from pathlib import Path

RULES = "r1: p(X) :- q(X) .  r2: s(X) :- p(X), limit(L), X < L .  limit(5) ."


@pytest.fixture(params=["reference", "embedded"])
def kb(request: pytest.FixtureRequest) -> ze.KnowledgeBase:
    kb = ze.open(engine=request.param)
    with kb.change() as c:
        c.add_rules("q(1) . q(7) .")
    return kb


def labels(kb: ze.KnowledgeBase) -> list[str]:
    return sorted(rule.label for rule in kb.rules)


def rules(kb: ze.KnowledgeBase) -> list[str]:
    return sorted(format_rule(rule) for rule in kb.rules)


def facts(kb: ze.KnowledgeBase) -> list[str]:
    return sorted(map(str, kb.facts()))


def test_a_pack_comes_and_goes_as_one_change(kb: ze.KnowledgeBase) -> None:
    before = facts(kb)
    pack = made(RULES)
    dry = kb.install(pack, dry_run=True)
    assert facts(kb) == before
    assert kb.packs() == ()
    report = kb.install(pack)
    assert (report.inserted, report.packs) == (dry.inserted, {"diagnosis": (None, 1)})
    assert report.version_after == report.version_before + 1
    assert facts(kb) == sorted([*before, "limit(5)", "p(1)", "p(7)", "s(1)"])
    assert labels(kb) == [f"diagnosis/{label}" for label in sorted(pack.labels.values())]
    assert "packs: install diagnosis 1" in str(report)
    assert kb.remove_pack("diagnosis").packs == {"diagnosis": (1, None)}
    assert (facts(kb), rules(kb)) == (before, [])
    assert kb.verify("reference").ok


def test_installing_what_is_installed_changes_nothing(kb: ze.KnowledgeBase) -> None:
    kb.install(made(RULES))
    version = kb.version
    assert not kb.install(made(RULES)).committed
    assert kb.version == version


def test_a_fact_of_a_pack_is_no_explicit_fact(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_facts([("limit", 5)])
    kb.install(made(RULES))
    kb.remove_pack("diagnosis")
    assert "limit(5)" in facts(kb)
    kb.install(made(RULES))
    with kb.change() as c:
        c.remove_facts([("limit", 5)])
    assert "limit(5)" in facts(kb)
    kb.remove_pack("diagnosis")
    assert "limit(5)" not in facts(kb)


def test_a_rule_goes_with_its_last_owner(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("own: p(A) :- q(A) .")
    kb.install(made("r1: p(X) :- q(X) .", more='shares = ["p"]'))
    kb.install(made("x: p(X) :- q(X) .", name="other", more='shares = ["p"]'))
    assert labels(kb) == ["own"]
    with kb.change() as c:
        c.remove_rules("own")
    assert labels(kb) == ["diagnosis/r1"]
    kb.remove_pack("diagnosis")
    assert labels(kb) == ["other/x"]
    kb.remove_pack("other")
    assert rules(kb) == []


def test_the_base_program_states_a_rule_of_a_pack(kb: ze.KnowledgeBase) -> None:
    kb.install(made("r1: p(X) :- q(X) ."))
    with kb.change() as c:
        c.add_rules("p(A) :- q(A) .")
    assert c.report.committed
    assert labels(kb) == ["diagnosis/r1"]
    with kb.change() as c:
        c.add_rules("own: p(A) :- q(A) .")
    assert not c.report.committed
    assert [w.code for w in c.report.warnings] == ["W002"]
    kb.remove_pack("diagnosis")
    assert rules(kb) == ["p(X) :- q(X) ."]


def test_a_rule_keeps_the_label_of_the_base_program(kb: ze.KnowledgeBase) -> None:
    kb.install(made("r1: p(X) :- q(X) ."))
    with kb.change() as c:
        c.add_rules("own: p(A) :- q(A) .")
    assert labels(kb) == ["own"]
    kb.remove_pack("diagnosis")
    assert labels(kb) == ["own"]


def test_a_change_removes_no_rule_of_a_pack(kb: ze.KnowledgeBase) -> None:
    kb.install(made(RULES))
    before, version = rules(kb), kb.version
    for text in ("diagnosis/r1", "p(Z) :- q(Z) ."):
        with refused("P012") as messages, kb.change() as c:
            c.remove_rules(text)
        assert "belongs to the pack diagnosis 1" in messages[0]
    with refused("P012", "C010"), kb.change() as c:
        c.add_rules("diagnosis/r1: p(X) :- other(X) .", replace=True)
    assert (rules(kb), kb.version) == (before, version)


def test_sync_leaves_packs_alone(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("own: a(X) :- q(X) .  both: p(X) :- q(X) .")
    kb.install(made("r1: p(X) :- q(X) .  r2: s(X) :- p(X) ."))
    with kb.change() as c:
        c.sync_rules("b(X) :- q(X) .")
    assert rules(kb) == sorted(
        ["b(X) :- q(X) .", "diagnosis/r1: p(X) :- q(X) .", "diagnosis/r2: s(X) :- p(X) ."]
    )
    # What is in force, as text, changes nothing.
    with kb.change() as c:
        c.sync_rules("\n".join(rules(kb)))
    assert not c.report.committed
    kb.remove_pack("diagnosis")
    assert rules(kb) == ["b(X) :- q(X) ."]


def test_an_upgrade_is_one_change_and_equals_the_new_version(kb: ze.KnowledgeBase) -> None:
    old, new = made(RULES), made("r1: p(X) :- q(X) .  one: s(X) :- p(X), limit(L), X < L .  limit(9) .", 2)
    delta = delta_between(old, new)
    kb.install(old)
    report = kb.install(delta)
    assert report.packs == {"diagnosis": (1, 2)}
    after = rules(kb), facts(kb), kb.installed
    assert kb.remove_pack("diagnosis").packs == {"diagnosis": (2, None)}
    kb.install(new)
    assert (rules(kb), facts(kb), kb.installed) == after
    assert "diagnosis/one" in labels(kb)
    assert kb.verify("reference").ok


def test_a_delta_wants_its_base(kb: ze.KnowledgeBase) -> None:
    old, new = made(RULES), made(RULES.replace("5", "9"), 2)
    delta = delta_between(old, new)
    with refused("P009"):
        kb.install(delta)
    kb.install(new)
    with refused("P009"):
        kb.install(delta)


def test_versions_rise(kb: ze.KnowledgeBase) -> None:
    kb.install(made("r1: p(X) :- q(X) .", 6))
    with refused("P008"):
        kb.install(made("r1: p(X) :- q(X) .", 5))
    with refused("P008"):
        kb.install(made("r1: p(X) :- q(X), r(X) .", 6))
    assert kb.install(made("r1: p(X) :- q(X) .", 5), older=True).packs == {"diagnosis": (6, 5)}


def test_two_packs_define_one_predicate_only_if_both_share_it(kb: ze.KnowledgeBase) -> None:
    kb.install(made("r1: p(X) :- q(X) ."))
    with refused("P004") as messages:
        kb.install(made("p(X) :- r(X) .", name="other", more='shares = ["p"]'))
    assert "diagnosis 1" in messages[0]
    assert "other 1" in messages[0]
    # Unary predicates are classes, and a variable class may be any of them.
    with refused("P004", "P004"):
        kb.install(made("rdf:type(X, C) :- kind(X, C) .  D(a) .", name="a"), made("D(b) .", name="b"))
    kb.install(made("r1: p(X) :- q(X) .", 2, more='shares = ["p"]'))
    kb.install(made("p(X) :- r(X) .", name="other", more='shares = ["p"]'))
    assert len(kb.rules) == 2


def test_a_pack_has_the_packs_that_it_needs(kb: ze.KnowledgeBase) -> None:
    needy = made("s(X) :- p(X) .", name="needy", more="requires = { diagnosis = 2 }")
    with refused("P005"):
        kb.install(needy)
    kb.install(made("p(X) :- q(X) ."))
    with refused("P005"):
        kb.install(needy)
    kb.install(needy, made("p(X) :- q(X) .", 2))
    with refused("P005"):
        kb.remove_pack("diagnosis")
    kb.install(remove=["diagnosis", "needy"])
    assert kb.packs() == ()


def test_a_pack_has_the_functions_that_it_needs(kb: ze.KnowledgeBase) -> None:
    pack = made("p(Y) :- q(X), Y := func:twice(X) .")
    with refused("P006") as messages:
        kb.install(pack)
    assert "func:twice" in messages[0]
    kb.function(lambda x: 2 * x, name="twice")
    kb.install(pack)
    assert "p(14)" in facts(kb)


def test_a_pack_of_a_later_language_is_refused(kb: ze.KnowledgeBase) -> None:
    with refused("P007"):
        kb.install(made("p(X) :- q(X) .", more="language = 99"))


def test_checks_hold_when_the_pack_is_in_force(kb: ze.KnowledgeBase) -> None:
    before = facts(kb), rules(kb), kb.version
    with refused("P010", "P010") as messages:
        kb.install(
            made(
                "p(X) :- q(X) .",
                more='checks = [{ none = "?- p(7) ." }, { some = "?- p(8) ." }, { some = "?- p(1) ." }]',
            )
        )
    assert "there must be no answer to ans() :- p(7) ." in messages[0]
    assert "some answer" in messages[1]
    assert (facts(kb), rules(kb), kb.version) == before
    kb.install(made("p(X) :- q(X) .", more='checks = [{ some = "?- p(7) ." }]'))
    assert kb.failing_checks() == ()
    with kb.change() as c:
        c.remove_facts([("q", 7)])
    assert [str(manifest) for manifest, _ in kb.failing_checks()] == ["diagnosis 1"]


def test_packs_that_are_not_stratified_together_are_refused_with_the_cycle(kb: ze.KnowledgeBase) -> None:
    kb.install(made("r1: p(X) :- q(X), not hot(X) ."))
    before = facts(kb), rules(kb), kb.version
    with refused("P011", "G001") as messages:
        kb.install(made("r1: hot(X) :- p(X) .", 3, name="cooling"))
    assert "the pack cooling 3 and the pack diagnosis 1 are not stratified together" in messages[0]
    assert "cooling/r1 derives hot/1, which diagnosis/r1 reads under `not`" in messages[1]
    assert "diagnosis/r1 derives p/1, which cooling/r1 reads" in messages[1]
    assert (facts(kb), rules(kb), kb.version) == before
    with pytest.raises(StratificationProblem):
        kb.install(made("r1: hot(X) :- p(X) .", 3, name="cooling"), dry_run=True)


def test_a_pack_that_does_not_fit_the_base_program_names_it(kb: ze.KnowledgeBase) -> None:
    with kb.change() as c:
        c.add_rules("own: hot(X) :- p(X) .")
    with refused("P011", "G001") as messages:
        kb.install(made("r1: p(X) :- q(X), not hot(X) ."))
    assert "the pack diagnosis 1 and the base program" in messages[0]


def test_what_is_not_installed_cannot_be_removed(kb: ze.KnowledgeBase) -> None:
    kb.install(made("p(X) :- q(X) ."))
    with refused("P013") as messages:
        kb.remove_pack("diagnoses")
    assert "did you mean diagnosis?" in messages[0]


def test_the_proof_of_a_fact_names_the_pack(kb: ze.KnowledgeBase) -> None:
    kb.install(made(RULES))
    assert "diagnosis/r2" in str(kb.explain("s(1)"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with ze.open(tmp_path / "farm", create=True) as kb:
        with kb.change() as c:
            c.add_rules("own: p(X) :- q(X) .  q(1) . q(7) .")
        kb.install(made(RULES))
        kb.install(delta_between(made(RULES), made(RULES.replace("5", "9"), 2)))
    return tmp_path / "farm"


def test_a_store_keeps_packs_in_log_and_table(store: Path) -> None:
    with ze.open(store) as kb:
        flushed = kb.installed
        kb.install(made("z(X) :- q(X) .", name="other"))
        logged = kb.installed
        # A reader replays the log, which the table does not have yet.
        with ze.open(store, read_only=True) as reader:
            assert (reader.installed, reader.rules) == (logged, kb.rules)
    with ze.open(store) as kb:
        assert kb.installed == logged
        assert list(flushed.installed) == ["diagnosis"]
        assert packs_of(logged.to_dict()) == logged
        assert [entry.message for entry in kb.log()] == [
            "",
            "install diagnosis 1",
            "upgrade diagnosis 1 to 2",
            "install other 1",
        ]


def test_a_rollback_brings_owners_back(store: Path) -> None:
    with ze.open(store) as kb:
        states = {version: (kb.at(version).installed, rules(kb.at(version))) for version in range(4)}
        for version in (1, 3, 2, 0, 3, 1, 2):
            report = kb.rollback(version)
            assert (kb.installed, rules(kb)) == states[version]
            assert kb.verify("reference").ok
        assert report.packs == {"diagnosis": (None, 1)}
        kb.remove_pack("diagnosis")
        assert labels(kb) == ["own"]


def test_a_reader_that_refreshes_sees_packs(store: Path) -> None:
    with ze.open(store, read_only=True) as reader:
        with ze.open(store) as kb:
            kb.install(made("z(X) :- q(X) .", name="other"), remove=["diagnosis"])
        (report,) = reader.refresh()
        assert report.packs == {"diagnosis": (2, None), "other": (None, 1)}
        assert [str(m) for m in reader.packs()] == ["other 1"]


def test_differences_and_histories_name_packs(store: Path) -> None:
    with ze.open(store) as kb:
        assert kb.diff(1, 3).packs == {"diagnosis": (None, 2)}
        history = str(kb.why_changed("s(7)"))
        assert "upgrade diagnosis 1 to 2" in history
        assert "diagnosis/r2" in history


def test_a_slice_holds_rules_of_packs_as_its_own(store: Path, tmp_path: Path) -> None:
    with ze.open(store) as kb:
        kb.export_slice(tmp_path / "device", "?- s(X) .")
    with ze.open(tmp_path / "device") as device:
        assert device.packs() == ()
        assert "s(7)" in facts(device)
        device.install(made(RULES, 1))
        assert [str(m) for m in device.packs()] == ["diagnosis 1"]


def test_a_record_of_an_upgrade_is_small(tmp_path: Path) -> None:
    lines = [f"r{n}: p{n}(X) :- q{n}(X) ." for n in range(300)]
    old = made("\n".join(lines), more='defines = ["p*"]')
    lines[7] = "r7: p7(X) :- other(X) ."
    new = made("\n".join(lines), 2, more='defines = ["p*"]')
    with ze.open(tmp_path / "farm", create=True) as kb:
        kb.install(old)
        before = kb.store.sizes().log
        kb.install(delta_between(old, new))
        assert kb.store.sizes().log - before < len(encoded(delta_between(old, new))) + 1_500
