"""A slice holds the facts it was asked for and what the rules make of them, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import zodiacedge as ze
from store.conftest import PROGRAM, code
from strategies import RandomProgram, examples, programs
from zodiacedge.language.ast import Variable, atom
from zodiacedge.language.printer import format_atom, format_rule

FARM = """
    sym:   near(X, Y) :- near(Y, X) .
    hot:   hot(S) :- reading(S, V), V > 50 .
    alarm: alarm(T) :- sensor(T, S), hot(S), not muted(T) .
    mute:  muted(T) :- order(T, O), silence(O) .
    many:  alarms(N) :- AGGREGATE(alarm(T)) WITH COUNT(T) AS N .
    paid:  paid(T) :- bill(T, B), settled(B) .
    up:    up() :- not down() .
    near(wt1, wt2) .  near(wt2, wt3) .
    sensor(wt1, s1) .  sensor(wt2, s2) .  sensor(wt3, s3) .
    reading(s1, 60) .  reading(s2, 70) .  reading(s3, 80) .
    bill(wt1, b1) .  settled(b1) .  Turbine(wt1) .  Turbine(wt2) .
    order(wt1, o1) .  silence(o1) .
"""


@pytest.fixture
def kb() -> ze.KnowledgeBase:
    found = ze.open()
    with found.change() as c:
        c.add_rules(FARM)
    return found


def shown(facts: frozenset[ze.Fact]) -> set[str]:
    return set(map(format_atom, facts))


def labels(kb: ze.KnowledgeBase) -> list[str]:
    return [rule.label for rule in kb.rules]


def test_a_query_takes_the_facts_that_its_atoms_match(kb: ze.KnowledgeBase, place: Path) -> None:
    text = "?- near(T, N), sensor(N, S), reading(S, _) ."
    found = kb.export_slice(place, text, T=ze.iri("wt2"))
    chosen = {"near(wt2, wt1)", "near(wt2, wt3)", "sensor(wt1, s1)", "sensor(wt3, s3)"}
    chosen |= {"reading(s1, 60)", "reading(s3, 80)"}
    assert shown(found.facts) == chosen
    with ze.open(place) as device:
        assert shown(device.explicit) == chosen
        # Nobody sent the order to mute wt1.
        assert [row[0] for row in device.query("?- alarm(T) .").rows] == [ze.iri("wt1"), ze.iri("wt3")]
        assert device.verify(against="reference").ok
        (entry,) = device.log()
        assert entry.message == f"version 1: {text}"


def test_what_a_query_names_is_given_and_its_rules_stay_behind(kb: ze.KnowledgeBase, place: Path) -> None:
    found = kb.export_slice(place, "near(wt1, _)", "alarm(_)")
    # The first was derived by the rule sym, which would derive near(wt2, wt1) from it.
    assert shown(found.facts) == {"near(wt1, wt2)", "alarm(wt2)", "alarm(wt3)"}
    assert [one.name for one in found.given] == ["near", "alarm"]
    with ze.open(place) as device:
        assert labels(device) == ["many", "up"]
        assert shown(device.facts()) == {*shown(found.facts), "alarms(2)", "up()"}


def test_rules_go_along_that_read_the_facts_and_those_that_these_need(
    kb: ze.KnowledgeBase, place: Path
) -> None:
    found = kb.export_slice(place, "reading(s1, _)")
    with ze.open(place) as device:
        # muted is not of the slice, but alarm is wrong without it as soon as an order comes.
        assert labels(device) == ["hot", "alarm", "mute", "many", "up"]
        with device.change() as c:
            c.add_facts("sensor(wt1, s1) .  order(wt1, o1) .  silence(o1) .")
        assert shown(device.facts()) >= {"hot(s1)", "muted(wt1)"}
        assert not device.query("?- alarm(T) .")
    assert found.left_behind == 2


def test_facts_that_mention_a_term_are_the_explicit_ones(kb: ze.KnowledgeBase, place: Path) -> None:
    found = kb.export_slice(place, "about(T) :- Turbine(T), near(T, wt2) .", "about(S) :- sensor(wt1, S) .")
    assert shown(found.facts) == {
        "near(wt1, wt2)",
        "sensor(wt1, s1)",
        "bill(wt1, b1)",
        "order(wt1, o1)",
        "Turbine(wt1)",
        "reading(s1, 60)",
    }
    with ze.open(place) as device:
        # Nothing is given: the whole program goes along, and near is symmetric again.
        assert len(device.rules) == len(kb.rules)
        assert device.query("?- near(wt2, wt1), alarm(wt1) .")


def test_a_class_that_a_rule_with_any_class_may_derive_is_given(place: Path) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("super: rdf:type(X, D) :- rdf:type(X, C), below(C, D) .  Turbine(wt1) .  Turbine(wt2) .")
        c.add_facts("below(<Turbine>, <Thing>) .")
    kb.export_slice(place / "one", "Thing(_)")
    with ze.open(place / "one") as device:
        assert shown(device.explicit) == {"Thing(wt1)", "Thing(wt2)"}
        assert "super" in labels(device)
    kb.export_slice(place / "all", "rdf:type(wt1, C)")
    with ze.open(place / "all") as device:
        assert shown(device.explicit) == {"Thing(wt1)", "Turbine(wt1)"}
        assert "super" not in labels(device)


def test_an_aggregate_chooses_and_is_not_sent(kb: ze.KnowledgeBase, place: Path) -> None:
    found = kb.export_slice(place, "?- reading(S, V), AGGREGATE(reading(X, W)) WITH MAX(W) AS V .")
    assert shown(found.facts) == {"reading(s3, 80)"}


def test_prefixes_go_along(place: Path) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("@prefix ex: <http://e/> .  ex:p(ex:a, ex:b) .")
    kb.export_slice(place, "ex:p(_, ex:b)")
    with ze.open(place) as device:
        assert device.query("?- ex:p(ex:a, X) .")


def test_a_slice_of_a_store_can_be_of_an_earlier_version(farm: Path, place: Path) -> None:
    with ze.open(farm, read_only=True) as kb:
        found = kb.at(1).export_slice(place.parent / "slice", "edge(_, _)")
    assert shown(found.facts) == {"edge(a, b)", "edge(b, c)"}


@pytest.mark.parametrize(
    ("slices", "values", "expected"),
    [
        ((), {}, "D015"),
        (("?- X := 5 .",), {}, "D015"),
        (("about() :- near(X, Y) .",), {}, "D015"),
        (("near(wt1",), {}, "L001"),
        (("about(X) :- near(X Y) .",), {}, "L001"),
        (("?- near(X, Y), Z > 5 .",), {}, "C001"),
        (("near(T, _)",), {"Q": 1}, "U009"),
        (("near(T, _)",), {"T": None}, "T002"),
        ((5,), {}, "U013"),
    ],
)
def test_a_slice_that_makes_no_sense_is_refused_and_nothing_is_made(
    kb: ze.KnowledgeBase, place: Path, slices: tuple[str, ...], values: dict[str, object], expected: str
) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        kb.export_slice(place, *slices, **values)
    assert code(caught.value) == expected
    assert list(place.parent.iterdir()) == []


def test_only_variables_that_somebody_wrote_are_told(kb: ze.KnowledgeBase, place: Path) -> None:
    with pytest.raises(ze.ZodiacError, match=r"its variables are: Turbine\n?$"):
        kb.export_slice(place, "near(Turbine, _)", Q=1)


def test_a_slice_without_facts_is_made_with_a_warning(kb: ze.KnowledgeBase, place: Path) -> None:
    found = kb.export_slice(place, 'sensor("wt1", _)')
    assert [one.code for one in found.warnings] == ["W015"]
    found = kb.export_slice(place.parent / "other", "senser(wt1, _)")
    assert [one.code for one in found.warnings] == ["W004", "W015"]


def test_nothing_is_written_over(kb: ze.KnowledgeBase, place: Path, farm: Path) -> None:
    with pytest.raises(ze.ZodiacError) as caught:
        kb.export_slice(farm, "near(_, _)")
    assert code(caught.value) == "D014"
    (place.parent / "mine").mkdir()
    (place.parent / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ze.ZodiacError) as caught:
        kb.export_slice(place.parent / "mine", "near(_, _)")
    assert code(caught.value) == "D002"


def test_a_slice_that_fails_leaves_nothing(place: Path) -> None:
    kb = ze.open()
    kb.function(lambda x: x, name="same")
    with kb.change() as c:
        c.add_rules("q(Y) :- p(X), Y := func:same(X) .  n(Y) :- s(X), Y := X + 1 .  p(1) .  s(1) .")
    kb.export_slice(place, "p(_)")
    with ze.open(place, read_only=True) as device:
        assert device.query("?- q(1) .")
    with (
        ze.open(place, read_only=True) as without,
        pytest.raises(ze.ZodiacError) as caught,
    ):
        without.export_slice(place.parent / "next", "p(_)")
    assert code(caught.value) == "D013"
    # What stays behind need not be registered.
    with ze.open(place, read_only=True) as without:
        without.export_slice(place.parent / "results", "q(_)")
    assert {path.name for path in place.parent.iterdir()} == {place.name, "results"}


def test_a_slice_opens_without_java(kb: ze.KnowledgeBase, place: Path) -> None:
    kb.export_slice(place, "reading(_, _)")
    script = (
        f"import sys, zodiacedge as ze; kb = ze.open({str(place)!r}); print(len(kb.query('?- hot(S) .'))); "
        "assert not any('pyspark' in name or 'py4j' in name for name in sys.modules)"
    )
    nowhere = {**os.environ, "PATH": "", "JAVA_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=nowhere
    )
    assert done.stdout == "3\n"


@settings(max_examples=examples(60, one_in=100), phases=(Phase.explicit, Phase.generate))
@given(program=programs(), data=st.data())
def test_a_slice_is_what_all_rules_but_those_of_given_predicates_make_of_its_facts(
    program: RandomProgram, data: st.DataObject
) -> None:
    kb = ze.open()
    with kb.change() as c:
        c.add_rules("\n".join(format_rule(rule, {}) for rule in program.rules))
        c.add_facts("\n".join(f"{format_atom(one, {})} ." for one in program.facts))
    visible = sorted({one.predicate for one in kb.facts()})
    if not visible:
        return
    chosen = data.draw(st.lists(st.sampled_from(visible), min_size=1, max_size=2, unique=True))
    texts = [
        format_atom(atom(one.name, tuple(Variable(f"V{n}") for n in range(one.arity))), {}) for one in chosen
    ]
    about = data.draw(st.booleans()) and all(one.arity for one in chosen)
    if about:
        texts = [f"about(V0) :- {text} ." for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        found = kb.export_slice(Path(folder) / "slice", *texts)
        whole = ze.open(engine="reference")
        given_names = set() if about else {(one.name, one.arity) for one in chosen}
        stays = [rule for rule in kb.rules if rule.head.predicate not in given_names]
        with whole.change() as c:
            c.add_rules("\n".join(format_rule(rule, {}) for rule in stays))
            c.add_facts("\n".join(f"{format_atom(one, {})} ." for one in found.facts))
        with ze.open(Path(folder) / "slice") as device:
            assert device.facts() == whole.facts()
            assert device.explicit == found.facts
    if about:
        assert found.facts <= kb.explicit
    else:
        assert found.facts == {one for one in kb.facts() if one.predicate in chosen}


@pytest.mark.parametrize(
    "text",
    [
        "about(X) :- edge(X, _) .",
        "about(X, Y) :- edge(X, Y) .",
        "about(X) :- value(a, X) .",
        "about(X) :- rdf:type(_, X) .",
        "about(X) :- node(X), not path(X, _) .",
    ],
)
def test_every_engine_finds_the_facts_that_mention_something(tmp_path: Path, text: str) -> None:
    found = []
    for engine in ("embedded", "reference"):
        kb = ze.open(engine=engine)
        with kb.change() as c:
            c.add_rules(PROGRAM)
            c.add_facts(
                "rdf:type(a, <T>) . edge(<T>, c) . path(a, b) . rdf:type(<T>, <K>) . rdf:type(a, <K>) ."
            )
        found.append(kb.export_slice(tmp_path / engine, text).facts)
    assert found[0] == found[1]
    assert found[0]
