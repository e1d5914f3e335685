"""What `@keep` forgets: with the clock, with what follows, and everywhere; and what comes too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from strategies import Seeded
from zodiacedge.engine.api import Settings
from zodiacedge.engine.embedded.engine import EmbeddedEngine
from zodiacedge.engine.reference import ReferenceEngine
from zodiacedge.kb.change import Change
from zodiacedge.kb.knowledge_base import KnowledgeBase
from zodiacedge.language.parser import parse_fact, parse_program

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = pytest.mark.parametrize("engine", ["reference", "embedded"])
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def opened(program: str, engine: str = "embedded") -> ze.KnowledgeBase:
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules(program)
        c.tick(at(0))
    return kb


def shown(kb: ze.KnowledgeBase, *predicates: str) -> set[str]:
    return {str(fact) for fact in kb.facts() if fact.predicate.name in predicates}


READINGS = """
@time reading 3 .
@keep reading 10 min .
hot: hot(S) :- reading(S, V, _), V > 30 .
reading(s1, 35, "2026-01-01T12:00:00Z"^^xsd:dateTime) .
reading(s2, 36, "2026-01-01T12:05:00Z"^^xsd:dateTime) .
reading(s3, 37, "some day") .
"""


@ENGINES
def test_old_facts_go_with_what_follows_from_them_in_the_tick(engine: str) -> None:
    kb = opened(READINGS, engine)
    kb.tick(at(10))
    assert shown(kb, "hot") == {"hot(s1)", "hot(s2)", "hot(s3)"}
    report = kb.tick(at(10.5))
    assert shown(kb, "hot") == {"hot(s2)", "hot(s3)"}
    assert "hot(s1)" in {str(fact) for fact in report.deleted}
    assert report.version_after == report.version_before + 1
    kb.tick(at(60))
    assert shown(kb, "hot") == {"hot(s3)"}
    assert kb.verify("reference").ok


@ENGINES
def test_late_facts_are_counted_and_not_taken(engine: str, tmp_path: Path) -> None:
    kb = opened(READINGS, engine)
    file = tmp_path / "reading.csv"
    file.write_text(
        '<s4>,50,"""2026-01-01T12:20:00Z""^^xsd:dateTime"\n<s5>,50,"""2026-01-01T12:39:00Z""^^xsd:dateTime"\n'
    )
    with kb.change() as c:
        c.tick(at(40))
        c.add_facts([("reading", ze.iri("s6"), 90, at(1)), ("reading", ze.iri("s7"), 90, at(31))])
        c.load(f"reading={file}")
    assert shown(kb, "hot") == {"hot(s3)", "hot(s5)", "hot(s7)"}
    (late,) = [warning for warning in c.report.warnings if warning.code == "W031"]
    assert "2 facts" in late.message
    assert "@keep reading" in late.message
    # What is refused is not mentioned as known either.
    assert kb.verify("reference").ok


@ENGINES
def test_late_facts_of_files_go_to_the_quarantine(engine: str, tmp_path: Path) -> None:
    kb = opened(READINGS, engine)
    file, bad = tmp_path / "reading.jsonl", tmp_path / "bad"
    file.write_text(
        '["<s4>", 50, "\\"2026-01-01T12:20:00Z\\"^^xsd:dateTime"]\n'
        '["<s5>", 50, "\\"2026-01-01T12:39:00Z\\"^^xsd:dateTime"]\n'
        '["<s4>", 50, "\\"2026-01-01T12:20:00Z\\"^^xsd:dateTime"]\n'
        "no fact\n"
    )
    kb.tick(at(40))
    with kb.change() as c:
        c.load(f"reading={file}", quarantine=bad)
        c.dry_run()
        # A dry run writes nothing there.
        assert {path.name for path in bad.iterdir()} == {"bad-lines-0001.jsonl"}
    (late,) = [warning for warning in c.report.warnings if warning.code == "W031"]
    assert late.message.startswith("1 fact older")
    assert {path.name for path in bad.iterdir()} == {"bad-lines-0001.jsonl", "late-facts-0001.jsonl"}
    with ze.open() as other, other.change() as c:
        c.load(bad / "late-facts-0001.jsonl")
    assert other.explicit == {parse_fact('reading(s4, 50, "2026-01-01T12:20:00Z"^^xsd:dateTime)')}


OBSERVATIONS = """@prefix sosa: <http://www.w3.org/ns/sosa/> .
@keep about sosa:Observation by sosa:resultTime 10 min .
seen(O) :- value(O, _) .
"""
SOSA = "<http://www.w3.org/ns/sosa/{}>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def observation(name: str, minute: float, *, member: bool = True) -> str:
    time = f'"{at(minute):%Y-%m-%dT%H:%M:%S}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    lines = [f"<{name}> {SOSA.format('resultTime')} {time} ."]
    lines += [f'<{name}> <value> "x" .']
    lines += [f"<{name}> {TYPE} {SOSA.format('Observation')} ."] if member else []
    return "\n".join(lines) + "\n"


@ENGINES
def test_late_observations_of_files_are_not_taken(engine: str, tmp_path: Path) -> None:
    kb = opened(OBSERVATIONS, engine)
    kb.tick(at(40))
    first, second, bad = tmp_path / "first.nt", tmp_path / "second.nt", tmp_path / "bad"
    # What is old and no observation stays; what becomes one of an old time is late.
    first.write_text(observation("o1", 20) + observation("o2", 35) + observation("o3", 20, member=False))
    with kb.change() as c:
        c.load(first, quarantine=bad)
    assert shown(kb, "seen") == {"seen(o2)", "seen(o3)"}
    (late,) = [warning for warning in c.report.warnings if warning.code == "W031"]
    assert late.message.startswith("3 facts older")
    assert len((bad / "late-facts-0001.jsonl").read_text().splitlines()) == 3
    second.write_text(f"<o3> {TYPE} {SOSA.format('Observation')} .\n")
    with kb.change() as c:
        c.load(second)
    assert shown(kb, "seen") == {"seen(o2)"}
    assert "W031" in {w.code for w in c.report.warnings}
    assert kb.verify("reference").ok


@ENGINES
def test_a_file_states_its_facts_again(engine: str, tmp_path: Path) -> None:
    kb = opened("@keep status 10 min since stated . up(X) :- status(X, up) .", engine)
    file, other = tmp_path / "status.csv", tmp_path / "other.csv"
    file.write_text("<a>,<up>\n")
    other.write_text("<b>,<up>\n")
    with kb.change() as c:
        c.load(f"status={file}", f"status={other}")
    kb.tick(at(8))
    with kb.change() as c:
        c.load(f"status={file}")
    kb.tick(at(12))
    assert shown(kb, "up") == {"up(a)"}
    # At the moment of the tick itself, too.
    with kb.change() as c:
        c.load(f"status={file}")
        c.tick(at(30))
    assert shown(kb, "up") == {"up(a)"}
    with kb.change() as c:
        c.unload(f"status={file}")
    assert not [fact for fact in kb.explicit if fact.relation.startswith("urn:zodiac:stated:")]
    assert kb.verify("reference").ok


@ENGINES
def test_a_dry_run_forgets_nothing(engine: str, tmp_path: Path) -> None:
    kb = opened(READINGS, engine)
    before = kb.facts()
    transaction = kb.change()
    file = tmp_path / "reading.csv"
    file.write_text('<s4>,50,"""2026-01-01T12:00:00Z""^^xsd:dateTime"\n')
    transaction.load(f"reading={file}")
    transaction.tick(at(60))
    assert len(transaction.dry_run().deleted) >= 4
    assert kb.facts() == before
    with kb.change() as c:
        c.load(f"reading={file}")
    assert "hot(s4)" in shown(kb, "hot")


@ENGINES
def test_an_observation_goes_with_all_that_is_said_about_it(engine: str) -> None:
    kb = opened(
        """@prefix sosa: <http://www.w3.org/ns/sosa/> .
        @keep about sosa:Observation by sosa:resultTime 1 d .
        sosa:Observation(o1) . sosa:resultTime(o1, "2026-01-01T12:00:00Z"^^xsd:dateTime) . value(o1, 5) .
        sosa:Observation(o2) . sosa:resultTime(o2, "2026-01-02T12:00:00Z"^^xsd:dateTime) . value(o2, 6) .
        madeBy(s1, o1) . note(o1) .
        seen(O) :- value(O, _) .""",
        engine,
    )
    kb.tick(at(24 * 60))
    assert shown(kb, "seen") == {"seen(o1)", "seen(o2)"}
    kb.tick(at(24 * 60 + 1))
    assert shown(kb, "seen", "value", "note", "madeBy") == {"seen(o2)", "value(o2, 6)", "madeBy(s1, o1)"}
    with kb.change() as c:
        c.add_rules(
            """@prefix sosa: <http://www.w3.org/ns/sosa/> .
            sosa:Observation(o3) . value(o3, 7) .
            sosa:resultTime(o3, "2026-01-01T12:00:00Z"^^xsd:dateTime) ."""
        )
    assert shown(kb, "seen") == {"seen(o2)"}
    assert "W031" in {warning.code for warning in c.report.warnings}
    assert kb.verify("reference").ok


@ENGINES
def test_a_moment_that_a_change_replaces_makes_nothing_old(engine: str) -> None:
    kb = opened(
        """@keep about Session by lastSeen 1 d .
        Session(s1) . lastSeen(s1, "2026-01-01T12:00:00Z"^^xsd:dateTime) . alarm(s1, x) .
        Session(s2) . lastSeen(s2, "2026-01-01T12:00:00Z"^^xsd:dateTime) . alarm(s2, x) .""",
        engine,
    )
    with kb.change() as c:
        c.tick(at(2 * 24 * 60))
        c.remove_facts('lastSeen(s1, "2026-01-01T12:00:00Z"^^xsd:dateTime) .')
        c.add_facts('lastSeen(s1, "2026-01-03T12:00:00Z"^^xsd:dateTime) .')
    assert not [warning for warning in c.report.warnings if warning.code == "W031"]
    assert shown(kb, "alarm", "Session") == {"alarm(s1, x)", "Session(s1)"}
    assert kb.verify("reference").ok


@ENGINES
def test_a_fact_without_a_time_goes_after_it_was_last_stated(engine: str) -> None:
    kb = opened(
        "@keep status 10 min since stated . status(a, up) . status(b, up) . up(X) :- status(X, up) .", engine
    )
    kb.tick(at(8))
    with kb.change() as c:
        c.add_facts([("status", ze.iri("a"), ze.iri("up"))])
    kb.tick(at(10.5))
    assert shown(kb, "up") == {"up(a)"}
    kb.tick(at(18))
    assert shown(kb, "up") == {"up(a)"}
    kb.tick(at(18.5))
    assert shown(kb, "up", "urn:zodiac:stated:status") == set()
    with kb.change() as c:
        c.add_facts([("status", ze.iri("c"), ze.iri("up"))])
    with kb.change() as c:
        c.remove_facts([("status", ze.iri("c"), ze.iri("up"))])
    assert not [fact for fact in kb.explicit if fact.relation.startswith("urn:zodiac:stated:")]
    assert kb.verify("reference").ok


@ENGINES
def test_facts_of_a_class_and_facts_from_before_the_clock_have_a_time_of_statement(engine: str) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as c:
        c.add_rules("@keep present 10 min since stated . present(a) . present(b) .")
    kb.tick(at(0))
    kb.tick(at(9))
    with kb.change() as c:
        c.add_rules("present(b) . present(c) .")
    kb.tick(at(11))
    assert shown(kb, "present") == {"present(b)", "present(c)"}
    with kb.change() as c:
        c.remove_rules("@keep present 10 min since stated .")
    kb.tick(at(60))
    assert shown(kb, "present") == {"present(b)", "present(c)"}


def test_what_is_kept_needs_a_time() -> None:
    kb = ze.open()
    with pytest.raises(ze.ZodiacError, match="C025"), kb.change() as c:
        c.add_rules("@keep reading 7 d .")
    with kb.change() as c:
        c.add_rules("@time reading 3 . @keep reading 7 d .")
    with pytest.raises(ze.ZodiacError, match="C025"), kb.change() as c:
        c.add_rules("@keep other 7 d .")
    with pytest.raises(ze.ZodiacError, match="C023"), kb.change() as c:
        c.remove_rules("@time reading 3 .")


@pytest.mark.parametrize(
    "text",
    [
        "@keep reading 1 .",
        '@keep reading "P1M"^^xsd:duration .',
        '@keep reading "P1M"^^xsd:yearMonthDuration .',
        '@keep status "P1Y"^^xsd:duration since stated .',
        '@keep about Observation by at "P1M"^^xsd:yearMonthDuration .',
        '@keep reading "-PT5M"^^xsd:dayTimeDuration .',
        'hot(S) :- reading(S, T) within "P1M"^^xsd:yearMonthDuration .',
        "@keep reading 7 d since told .",
        "@keep about Observation 1 d .",
        "@keep 7 d .",
    ],
)
def test_a_declaration_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ze.ZodiacError, match="L02"):
        parse_program(text)


def test_a_predicate_may_be_called_about() -> None:
    (fact,) = parse_program("@keep about 7 d .").facts
    assert str(fact.args[0]) == "about"


def test_a_rollback_brings_back_what_was_forgotten_with_its_time(tmp_path: Path) -> None:
    with ze.open(tmp_path / "s", create=True) as kb:
        with kb.change() as c:
            c.add_rules(READINGS)
            c.tick(at(0))
        kb.tick(at(30))
        assert shown(kb, "hot") == {"hot(s3)"}
        kb.rollback(1)
        assert shown(kb, "hot") == {"hot(s1)", "hot(s2)", "hot(s3)"}
        kb.tick(at(12))
        assert shown(kb, "hot") == {"hot(s2)", "hot(s3)"}
    with ze.open(tmp_path / "s") as kb:
        assert shown(kb, "hot") == {"hot(s2)", "hot(s3)"}
        kb.tick(at(20))
        assert shown(kb, "hot") == {"hot(s3)"}


def test_a_slice_forgets_when_the_whole_does(tmp_path: Path) -> None:
    kb = opened(
        READINGS
        + """@keep status 5 min since stated .
        status(a, up) . status(b, up) . Lit(c) . Up(X) :- status(X, up) ."""
    )
    kb.tick(at(3))
    with kb.change() as c:
        c.add_rules("status(b, up) .")
    kb.export_slice(tmp_path / "slice", "status(_, _)", "reading(_, _, _)")
    with ze.open(tmp_path / "slice") as device:
        for minute in (4, 5.5, 8.5, 10.5, 30):
            kb.tick(at(minute))
            device.tick(at(minute))
            assert shown(device, "status", "Up", "hot") == shown(kb, "status", "Up", "hot")
            assert device.verify("reference").ok
    kb.export_slice(tmp_path / "other", "Lit(_)")
    with ze.open(tmp_path / "other") as device:
        assert not [fact for fact in device.explicit if fact.relation.startswith("urn:zodiac:stated:")]


def test_what_came_without_a_statement_is_stated_with_the_next_change() -> None:
    kb = opened("@keep status 5 min since stated . status(a) .")
    # As a copy of facts of another knowledge base, and as a rollback.
    kb.apply(Change(add_facts=(parse_fact("status(b)"),), accepted=True))
    kb.tick(at(4))
    kb.tick(at(6))
    assert shown(kb, "status") == {"status(b)"}
    kb.tick(at(10))
    assert shown(kb, "status") == set()


def test_what_is_kept_bounds_a_recursion() -> None:
    kb = opened("""@time edge 3 . @keep edge 10 min .
        path(X, Y) :- edge(X, Y, _) . path(X, Z) :- path(X, Y), edge(Y, Z, _) . loop(X) :- path(X, X) .
        paths(N) :- AGGREGATE(path(X, _)) WITH COUNT(X) AS N .""")
    with kb.change() as c:
        c.add_facts([("edge", ze.iri(f"n{n}"), ze.iri(f"n{(n + 1) % 6}"), at(n)) for n in range(6)])
    left = []
    for minute in (10, 10.5, 11.5, 13.5, 20):
        kb.tick(at(minute))
        left.append((len(kb.query("path(X, Y)")), len(kb.query("loop(X)"))))
        assert kb.verify("reference").ok
    assert left == [(36, 6), (15, 0), (10, 0), (3, 0), (0, 0)]


def test_versions_differ_by_what_was_forgotten(tmp_path: Path) -> None:
    with ze.open(tmp_path / "s", create=True) as kb:
        with kb.change() as c:
            c.add_rules(READINGS + "@keep status 5 min since stated . status(a, up) .")
            c.tick(at(0))
        before = kb.facts()
        kb.tick(at(12))
        difference = kb.diff(1, 2)
        assert set(difference.deleted) == before - kb.facts()
        assert set(difference.inserted) == kb.facts() - before
        kb.rollback(1)
        assert kb.facts() == before
        # Its clock, too: what was forgotten goes again when it is due.
        kb.tick(at(4))
        assert shown(kb, "status") == {"status(a, up)"}
        kb.tick(at(6))
        assert shown(kb, "status") == set()
        assert shown(kb, "hot") == {"hot(s1)", "hot(s2)", "hot(s3)"}
        assert kb.verify("reference").ok


def test_what_is_forgotten_is_gone_from_the_files_of_the_store(tmp_path: Path) -> None:
    said = "a text that nobody may remember"
    with ze.open(tmp_path / "s", create=True) as kb:
        with kb.change() as c:
            c.add_rules("@time said 3 . @keep said 10 min . heard: heard(X) :- said(_, X, _) .")
            c.tick(at(0))
            c.add_facts([("said", ze.iri("s1"), said, at(0))])
        kb.flush()
        assert len(kb.query(f'?- heard("{said}") .')) == 1
        # The record of the tick that deletes it is the last one that has it.
        for minute in (11, 12):
            kb.tick(at(minute))
            kb.flush()
        kb.vacuum(timedelta())
        assert not kb.query(f'?- said(_, "{said}", _) .')
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if said.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("program", "minutes"),
    [
        ('@time e 1 . @keep e 5 min . e("2026-01-01T11:58:00Z"^^xsd:dateTime) .', 3),
        ("@keep s 5 min since stated . s(a) .", 5),
        ('@keep about b by t 5 min . b(x) . t(x, "2026-01-01T11:56:00Z"^^xsd:dateTime) .', 1),
        (
            """@time e 1 . @keep e 5 min . w(T) :- e(T) within 5 min .
            e("2026-01-01T11:59:00Z"^^xsd:dateTime) .""",
            4,
        ),
    ],
)
def test_the_clock_of_the_system_ticks_when_a_fact_must_go(
    program: str, minutes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [START]
    monkeypatch.setattr("zodiacedge.kb.knowledge_base.system_time", lambda: clock[0])
    kb = ze.open(clock="system")
    with kb.change() as c:
        c.add_rules(program)
    assert kb.now == START
    clock[0] = at(minutes)
    # A fact as old as its length stays; what is as old as the length of a window is outside.
    at_edge = kb.tick_when_due()
    assert (at_edge is not None) == ("within" in program)
    clock[0] += timedelta(microseconds=1)
    report = kb.tick_when_due()
    assert report is not None
    assert report.facts_removed > 1
    assert kb.now == clock[0]
    clock[0] += timedelta(seconds=1)
    assert kb.tick_when_due() is None


def test_a_time_of_the_clock_is_no_reason_to_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [START]
    monkeypatch.setattr("zodiacedge.kb.knowledge_base.system_time", lambda: clock[0])

    def ticks(kb: ze.KnowledgeBase, minutes: int) -> int:
        count = 0
        for _ in range(6 * minutes):
            clock[0] += timedelta(seconds=10)
            count += kb.tick_when_due() is not None
        return count

    with ze.open(tmp_path / "s", create=True, clock="system") as kb:
        with kb.change() as c:
            c.add_rules("@time e 2 . s(X) :- t(X), not e(X, _) within 2 min .")
            c.add_facts([("t", "a"), ("e", "a", START)])
        assert not kb.query("s(X)")
        # It ticks as the reading leaves the window, and never for the times that it ticked to.
        assert ticks(kb, 30) == 1
        assert kb.query("s(X)")
        with kb.change() as c:
            c.add_facts([("e", "a", clock[0] + timedelta(minutes=1))])
        assert ticks(kb, 30) == 2
        # Another fact has the very time of the clock.
        with kb.change() as c:
            c.add_facts([("e", "a", clock[0])])
        assert kb.now == clock[0]
        assert ticks(kb, 30) == 1
    with ze.open(tmp_path / "s", clock="system") as kb:
        assert ticks(kb, 10) == 0


def test_a_tick_that_another_change_was_quicker_with_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [START]
    monkeypatch.setattr("zodiacedge.kb.knowledge_base.system_time", lambda: clock[0])
    kb = ze.open(clock="system")
    with kb.change() as c:
        c.add_rules("@time e 1 . @keep e 5 min .")
        c.add_facts([(START,)], "e")
    due = kb._next_due()
    clock[0] = at(7)
    kb.tick(at(8))
    monkeypatch.setattr(kb, "_next_due", lambda: due)
    assert kb.tick_when_due() is None
    assert kb.now == at(8)


def test_what_is_too_old_and_stays_is_not_due_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [START]
    monkeypatch.setattr("zodiacedge.kb.knowledge_base.system_time", lambda: clock[0])
    kb = ze.open(clock="system")
    with kb.change() as c:
        c.add_rules("""@keep about b by t 5 min . t(x, "2026-01-01T11:00:00Z"^^xsd:dateTime) . t(y, 5) .
            @time e 1 . @keep e 5 min . e(T) :- t(_, T) .""")
    for minute in range(1, 30):
        clock[0] = at(minute)
        assert kb.tick_when_due() is None
    assert shown(kb, "t", "e")


@pytest.mark.parametrize("seed", range(12))
def test_engines_forget_alike(seed: int) -> None:
    dice = Seeded(seed)
    program = """
    @time e 3 . @keep e 3 min . @keep s 2 min since stated . @keep about b by t 4 min .
    h(X) :- e(X, V, _) within 2 min, V > 1 .
    quiet(X) :- s(X), not e(X, _, _) within 1 min .
    n(X, N) :- AGGREGATE(e(X, V, T)) ON X WITH COUNT(T) AS N .
    old(X) :- b(X), not h(X) .
    """
    expected = KnowledgeBase(ReferenceEngine(), Settings())
    found = KnowledgeBase(EmbeddedEngine(modules=bool(seed & 1)), Settings())
    for kb in (expected, found):
        with kb.change() as c:
            c.add_rules(program)
    now = START
    for _ in range(14):
        now += timedelta(seconds=30 * dice.number(0, 5))
        facts = []
        for _ in range(dice.number(0, 4)):
            thing = dice.pick(("x", "y", "z"))
            moment = now + timedelta(seconds=30 * dice.number(-9, 3))
            time = f'"{moment:%Y-%m-%dT%H:%M:%S}Z"^^xsd:dateTime'
            text = dice.pick(
                (
                    f"e({thing}, {dice.number(0, 3)}, {time})",
                    f"s({thing})",
                    f"b({thing})",
                    f"t({thing}, {time})",
                )
            )
            facts.append(parse_fact(text))
        gone = tuple(dice.pick(sorted(expected.explicit, key=str)) for _ in range(dice.number(0, 1)))
        gone = tuple(fact for fact in gone if not fact.relation.startswith("urn:zodiac:"))
        change = Change(add_facts=tuple(facts), remove_facts=gone, tick=now if dice.chance(80) else None)
        told, report = expected.apply(change), found.apply(change)
        assert found.facts() == expected.facts()
        assert found.explicit == expected.explicit
        assert (report.inserted, report.deleted) == (told.inserted, told.deleted)
        assert {w.message for w in report.warnings} == {w.message for w in told.warnings}
    assert found.verify("reference").ok
