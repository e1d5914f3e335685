"""Questions about a dry run: why a fact would be there, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from explain.checker import Facts, problems
from maintenance.test_random_sessions import changes_of
from strategies import Seeded, keyed, random_session
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.errors import ZodiacError
from zodiacedge.explain.missing import BodyFails
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.kb.preview.samples import preview_of

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine
    from zodiacedge.explain.proof import Proof
    from zodiacedge.language.ast import Fact


@pytest.fixture
def farm(engine: Engine) -> KnowledgeBase:
    kb = KnowledgeBase(engine, Settings())
    with kb.change() as c:
        c.add_rules("r1: alarm(X) :- reading(X, V), V > 80 .  reading(wt1, 90) .  reading(wt2, 70) .")
    return kb


def test_a_fact_that_would_be_there_is_explained(farm: KnowledgeBase) -> None:
    report = farm.dry_run(add_rules="r2: alarm(X) :- reading(X, V), V > 60 .", remove_rules="r1")
    proof = report.explain("alarm(wt2)")
    assert [step.rule.label for step in proof.steps()] == ["r2"]
    assert proof.version is None
    with pytest.raises(ZodiacError, match="X003"):
        farm.explain("alarm(wt2)")


def test_a_fact_that_would_not_be_there_is_explained(farm: KnowledgeBase) -> None:
    report = farm.dry_run(remove_facts="reading(wt1, 90) .")
    (failure,) = report.why_not("alarm(wt1)").rules
    assert isinstance(failure, BodyFails)
    assert farm.explain("alarm(wt1)").height == 1


def test_a_limit_of_a_dry_run_is_a_number_of_facts(farm: KnowledgeBase) -> None:
    with pytest.raises(ZodiacError, match="U013: expected a number of rows, found 0"):
        farm.dry_run().explain("alarm(X)", limit=0)


def test_a_dry_run_of_another_version_is_not_explained(farm: KnowledgeBase) -> None:
    report = farm.dry_run(add_facts="reading(wt2, 99) .")
    assert report.explain("alarm(wt2)").height == 1
    with farm.change() as c:
        c.add_facts("reading(wt3, 1) .")
    with pytest.raises(ZodiacError, match="X005"):
        report.explain("alarm(wt2)")


def test_the_report_of_a_change_points_to_the_knowledge_base() -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_facts("p(a) .")
    assert c.report is not None
    with pytest.raises(ZodiacError, match="X006"):
        c.report.explain("p(a)")


def test_random_dry_runs_are_proved() -> None:
    proved = 0
    for seed in range(12):
        kb = KnowledgeBase(EmbeddedEngine(), Settings())
        for change in changes_of(random_session(Seeded(seed), most_changes=4)):
            try:
                report = kb.dry_run(change)
            except ZodiacError:
                continue
            proofs: dict[Fact, Proof] = {}
            inserted = sorted(report.inserted, key=str)
            for fact in inserted[:: max(1, len(inserted) // 5)]:
                proofs[fact] = report.explain(fact)
            kb.apply(change)
            facts = Facts.of(kb.facts(), kb.explicit, kb.settings.registry)
            for fact, proof in proofs.items():
                assert list(problems(proof, keyed(kb.rules), facts)) == [], f"seed {seed}: {fact}"
                assert proof.height == kb.explain(fact).height
                proved += 1
    assert proved > 50


def test_reasons_are_clipped_as_they_are_shown() -> None:
    kb = ze.open(engine="reference")
    base = f"http://example.org/{'long/' * 30}"
    with kb.change() as c:
        c.add_rules(f"@prefix f: <{base}> . f:reading(f:wt1, 90) .")
    report = kb.dry_run(add_rules="r1: f:alarm(X) :- f:reading(X, V), V > 80 .")
    (sample,) = preview_of(kb, report, 2).samples
    assert sample.clipped_reason(report.prefixes) == "by r1 from f:reading(f:wt1, 90), V > 80: 90 > 80"
    assert sample.clipped_reason({}).endswith("…")
