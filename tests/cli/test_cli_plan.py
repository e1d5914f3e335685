"""`zodiac plan`: join orders, with guesses or with the sizes of real relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

RULES = "far: far(X, Z) :- near(X, Y), near(Y, Z), big(Z) .\nbig: big(X) :- near(X, X) .\n"


def test_without_facts_the_estimates_are_guesses(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    assert "about 1,000 each" in zodiac("plan", "a.rules").out


def test_facts_change_estimates_and_order(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "".join(f"{n},{n + 1}\n" for n in range(400)) + "7,7\n")
    done = zodiac("plan", "a.rules", "--facts", "near=near.csv", "--rule", "far")
    assert done.code == 0
    first = done.out.splitlines()[2]
    assert "big(Z) by scan, about 1 each" in first


def test_facts_that_are_not_there_are_told(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    done = zodiac("plan", "a.rules", "--facts", "nowhere.csv")
    assert done.code != 0
    assert "nowhere.csv" in done.err


def test_the_plans_of_a_store_have_the_sizes_of_its_relations(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "".join(f"{n},{n + 1}\n" for n in range(400)) + "7,7\n")
    assert zodiac("init", "a.zodiac", "--rules", "a.rules", "--facts", "near=near.csv").code == 0
    of_files = zodiac("plan", "a.rules", "--facts", "near=near.csv")
    assert zodiac("plan", "a.zodiac").out == of_files.out
    assert "error U006" in zodiac("plan", "a.zodiac", "--rule", "nowhere").err


def test_the_plan_of_an_aggregate_shows_its_body(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "n: n(X, N) :- AGGREGATE(near(X, Y), big(Y)) ON X WITH COUNT(Y) AS N .\n")
    assert zodiac("plan", "a.rules").out.splitlines()[2:] == [
        "    1. match the aggregate's rows by scan",
        "       inside the aggregate",
        "         1. match near(X, Y) by scan, about 1,000 each",
        "         2. match big(Y) by membership, about 100 each, first match only",
    ]
    (plan,) = cast("list[dict[str, list[object]]]", zodiac("plan", "a.rules", "--json").document["plans"])
    assert len(plan["aggregate"]) == 2


def test_analysis_shows_rows_beside_estimates_and_says_which_are_off(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "".join(f"{n},{n + 1}\n" for n in range(400)) + "7,7\n")
    done = zodiac("plan", "a.rules", "--facts", "near=near.csv", "--analyze")
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "as a whole estimated actual rows seconds" in lines
    (scan,) = (line for line in lines if line.startswith("1. match near(X, X) by scan"))
    assert scan.startswith("1. match near(X, X) by scan 401 1 1 0.")
    assert scan.endswith("401 times too many expected")
    assert "rule estimated rows actual rows facts seconds" in lines
    assert any(line.startswith("big 401 1 1 0.") for line in lines)
    assert "big, step 1: estimated 401 each, actual 1" in lines


def test_an_atom_of_the_node_itself_has_no_estimate(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", "t: t(X, Z) :- t(X, Y), e(Y, Z) .  e: t(X, Y) :- e(X, Y) .")
    save("e.csv", "1,2\n2,3\n3,4\n")
    options = ("plan", "a.rules", "--facts", "e=e.csv", "--rule", "t")
    assert "match t(X, Y) by index, about ? each" in zodiac(*options).out
    done = zodiac(*options, "--analyze")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert any(line.startswith("2. match t(X, Y) by index ? 1 3 0.") for line in lines)
    assert any(line.startswith("t ? 3 3 0.") for line in lines)
    assert "0 estimates off by a factor of 10 or more" in lines
    (rule,) = cast("list[dict[str, object]]", zodiac(*options, "--analyze", "--json").document["measured"])
    assert rule["estimate"] is None


def test_analysis_as_json_and_of_a_store(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    save("near.csv", "7,7\n7,8\n")
    assert zodiac("init", "a.zodiac", "--rules", "a.rules", "--facts", "near=near.csv").code == 0
    done = zodiac("plan", "a.zodiac", "--analyze", "--rule", "far", "--json")
    (rule,) = cast("list[dict[str, object]]", done.document["measured"])
    assert (rule["rule"], rule["rows"], rule["facts"]) == ("far", 1, 1)
    steps = cast("list[dict[str, object]]", rule["steps"])
    assert [(step["place"], step["rows"], step["off"]) for step in steps] == [
        (0, 2, False),
        (1, 2, False),
        (2, 1, False),
    ]


def test_analysis_needs_facts_and_the_embedded_engine(zodiac: Zodiac, save: Save) -> None:
    save("a.rules", RULES)
    done = zodiac("plan", "a.rules", "--analyze")
    assert (done.code, done.out) == (2, "")
    assert "add --facts FILE, or name a store" in done.err
    done = zodiac("plan", "a.rules", "--analyze", "--engine", "spark")
    assert done.code == 2
    assert "leave out --engine" in done.err
