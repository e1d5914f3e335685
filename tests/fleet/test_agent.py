"""Agents with a hub that runs: packs come when they are needed, are watched, go back, go."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import urllib3

import zodiacedge as ze
from fleet.running import diagnosis, until
from packs.making import made, refused
from zodiacedge.errors import StoreProblem
from zodiacedge.fleet.agent.agent import Agent, AgentOptions
from zodiacedge.fleet.agent.sources import HttpSource
from zodiacedge.fleet.trust.metadata import LIFETIMES
from zodiacedge.language.parser import parse_program
from zodiacedge.store.problems import unusable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.running import Device, Farm

pytestmark = pytest.mark.slow


def test_a_pack_comes_when_it_is_needed_and_goes_when_it_is_not(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    assert "hot(wt1)" in {str(fact).replace('"', "") for fact in device.kb.facts()}
    device.until(lambda: '"probation"' in str(farm.facts("?- status(D, P, V, S) .")))
    with device.kb.change() as change:
        change.remove_facts([("reading", "wt1", 95)])
    device.settle("removed diagnosis")
    assert device.packs() == []
    assert farm.facts("?- assigned(D, P, V) .") == set()


def test_a_pack_that_is_not_allowed_does_not_come(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device("wt9")
    device.until(lambda: farm.facts('?- requested("wt9", P) .'))
    device.agent.step()
    assert device.packs() == []


def test_what_is_needed_and_names_no_pack_is_told_and_stops_nothing(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    device = make_device()
    with device.kb.change() as change:
        change.add_facts('zodiac:needs("../my pack") .')
    device.settle("on probation diagnosis 1")
    assert [text for text in device.told if text.startswith("F0")] == [
        "F009: '../my pack' is needed, and is no name of a pack"
    ]
    assert farm.facts("?- requested(D, P) .") == {'requested("wt1", "diagnosis")'}


def test_an_upgrade_arrives_as_a_delta_and_becomes_active(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    device.restart(probation=0.0)
    device.settle("active diagnosis 1")
    farm.publish(diagnosis(2, 93))
    device.settle("active diagnosis 2")
    assert device.packs() == ["diagnosis 2"]
    assert (device.folder / "trust/blobs/packs_diagnosis_1-2.zdelta").exists()
    device.until(lambda: farm.facts('?- worked("wt1", "diagnosis", 2) .'))


def test_a_pack_whose_check_fails_on_probation_goes_back(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    before = device.kb.rules
    farm.publish(diagnosis(2, 50, '[[checks]]\nnone = "?- hot(T), fine(T) ."'))
    device.settle("on probation diagnosis 2")
    with device.kb.change() as change:
        change.add_facts([("fine", "wt2")])
    device.settle("returned diagnosis 2")
    assert device.packs() == ["diagnosis 1"]
    assert set(device.kb.rules) == set(before)
    # The hub hears of it, and a version that failed once among one halts.
    device.until(lambda: farm.facts('?- halted("diagnosis", 2) .'))
    assert farm.facts('?- reason("wt1", "diagnosis", 2, R) .')
    device.restart()
    for _ in range(3):
        device.agent.step()
    assert device.packs() == ["diagnosis 1"]
    farm.publish(diagnosis(3, 50))
    device.settle("on probation diagnosis 3")


def test_a_pack_goes_back_though_the_check_of_the_version_before_fails_as_well(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    check = '[[checks]]\nnone = "?- hot(T), fine(T) ."'
    farm.publish(diagnosis(2, 90, check))
    device = make_device()
    device.settle("on probation diagnosis 2")
    device.restart(probation=0.0)
    device.settle("active diagnosis 2")
    device.restart()
    farm.publish(diagnosis(3, 85, check))
    device.settle("on probation diagnosis 3")
    with device.kb.change() as change:
        change.add_facts([("fine", "wt1")])
    device.settle("returned diagnosis 3")
    assert device.packs() == ["diagnosis 2"]
    device.until(lambda: farm.facts('?- halted("diagnosis", 3) .'))
    assert device.packs() == ["diagnosis 2"]


def test_a_first_version_that_fails_is_removed(farm: Farm, make_device: Callable[..., Device]) -> None:
    farm.publish(diagnosis(2, 50, '[[checks]]\nnone = "?- hot(T), fine(T) ."'))
    device = make_device()
    device.settle("on probation diagnosis 2")
    with device.kb.change() as change:
        change.add_facts([("fine", "wt2")])
    device.settle("returned diagnosis 2")
    assert "remove diagnosis 2" in [entry.message for entry in device.kb.log()]
    # The hub assigns what was not halted.
    device.settle("on probation diagnosis 1")


def test_what_cannot_run_here_is_refused_and_reported(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    farm.publish(made("hot(T) :- reading(T, C), func:predict(C) > 1 .", 2))
    device.settle("refused diagnosis 2")
    assert device.packs() == ["diagnosis 1"]
    device.until(lambda: farm.facts('?- reason("wt1", "diagnosis", 2, R) .'))
    assert "P006" in str(farm.facts('?- reason("wt1", "diagnosis", 2, R) .'))


def test_a_pack_that_explodes_is_refused_within_its_limits(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    device = make_device(limits=ze.Limits(facts=500))
    device.settle("on probation diagnosis 1")
    numbers = " ".join(f"n({n}) ." for n in range(40))
    farm.publish(made(f"big(X, Y) :- n(X), n(Y) .  {numbers}", 2))
    device.settle("refused diagnosis 2")
    assert device.packs() == ["diagnosis 1"]
    assert "big" not in str(device.kb.facts())


def test_packs_that_need_each_other_arrive_in_any_order(
    farm: Farm, make_device: Callable[..., Device]
) -> None:
    farm.publish(made("a(X) :- b(X) .", name="a", more="requires = { b = 1 }"))
    farm.publish(made("b(X) :- c(X) .", name="b"))
    farm.say('wanted("wt1", "a") .  wanted("wt1", "b") .', "more")
    device = make_device()
    device.settle("on probation a 1")
    assert {"a 1", "b 1"} <= set(device.packs())


def test_without_a_hub_the_device_goes_on(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    farm.stop()
    told = len(device.told)
    device.restart()
    device.until(lambda: device.agent._unheard)
    for _ in range(3):
        device.agent._next_try = 0.0
        device.agent.step()
    # Neither status nor metadata nor news can be had: that is one problem.
    assert [text[:4] for text in device.told[told:]] == ["F003"]
    assert device.packs() == ["diagnosis 1"]
    assert device.agent.memory.stale > 0
    with device.kb.change() as change:
        change.add_facts([("reading", "wt5", 99)])
    assert "wt5" in str(device.kb.matching("?- hot(T) ."))
    farm.start()
    farm.publish(diagnosis(2))
    device.settle("on probation diagnosis 2")
    device.until(lambda: not device.agent.memory.stale)


def test_an_agent_rests_while_its_hub_is_away(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.close()
    farm.stop()
    device.kb = device._open()
    options = AgentOptions(farm.base, interval=3600.0)
    agent = device.agent = Agent(device.kb, device.folder, options, device.told.append)
    steps: list[None] = []
    runs = threading.Thread(target=agent.run, args=(lambda: steps.append(None),))
    runs.start()
    until(lambda: any(text.startswith("F003") for text in device.told))
    time.sleep(0.5)
    assert len(steps) == 1
    agent.close()
    runs.join()


def test_a_disk_that_is_full_does_not_end_an_agent_and_a_store_that_is_closed_does(
    make_device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device()

    def full() -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(device.agent.memory, "save", full)
        device.agent.step()
        assert "No space left on device" in device.told
    device.settle("on probation diagnosis 1")

    def closed() -> None:
        raise unusable("store", "it is closed")

    with pytest.raises(StoreProblem):
        device.agent.step(closed)


def test_the_clock_ticks_without_readings(farm: Farm, tmp_path: Path) -> None:
    assert farm.hub
    code = farm.hub.state.codes.make("wt1", [], farm.repository.root())
    with ze.open(tmp_path / "store", create=True, clock="system") as kb:
        with kb.change() as change:
            change.add_program(
                parse_program("""@time said 2 .
                silent(S) :- sensor(S), not said(S, _) within 1 s .
                sensor(s1) .""")
            )
            change.add_facts([("said", ze.iri("s1"), datetime.now(UTC))])
        agent = Agent(kb, tmp_path / "agent", AgentOptions(farm.base, "wt1", code), print)

        def is_silent() -> bool:
            agent.step()
            return bool(kb.matching("?- silent(S) ."))

        until(is_silent)
        agent.close()


def test_a_clock_that_was_set_back_ends_no_hold_off(make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    with device.kb.change() as change:
        change.remove_facts([("reading", "wt1", 95)])
    device.agent.memory.needed["diagnosis"] = time.time() + 365 * 86_400
    device.settle("removed diagnosis")


def test_expired_metadata_changes_nothing(
    farm: Farm, make_device: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device()
    device.settle("on probation diagnosis 1")
    # A clock that is wrong by a year: everything that the hub signs has expired.
    for role in LIFETIMES:
        monkeypatch.setitem(LIFETIMES, role, timedelta(days=-365))
    farm.publish(diagnosis(2))
    device.settle("F002")
    assert device.packs() == ["diagnosis 1"]
    assert device.agent.memory.stale > 0


def test_packs_of_the_owner_are_left_alone(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    device.kb.install(made("own(X) :- reading(X, _) .", name="own"))
    device.settle("on probation diagnosis 1")
    with device.kb.change() as change:
        change.remove_facts([("reading", "wt1", 95)])
    device.settle("removed diagnosis")
    assert device.packs() == ["own 1"]
    assert farm.problems == []


def test_a_device_enrols_once_with_its_own_code(farm: Farm, make_device: Callable[..., Device]) -> None:
    device = make_device()
    kb = ze.open()
    for name, code in (("wt1", device.code), ("wt2", device.code), ("wt2", f"{'0' * 32}{device.code[32:]}")):
        with refused("F008"):
            Agent(kb, farm.folder / "evil", AgentOptions(farm.base, name, code), print)
    with refused("F001"):
        Agent(kb, farm.folder / "evil", AgentOptions(farm.base, "wt2", f"{'0' * 32}-{'0' * 20}"), print)
    with refused("F008"):
        Agent(kb, farm.folder / "evil", AgentOptions(farm.base), print)
    device.restart()
    device.settle("on probation diagnosis 1")


def test_facts_come_by_http_from_this_machine(tmp_path: Path) -> None:
    with ze.open(tmp_path / "store", create=True) as kb:
        source = HttpSource(kb, 0, print)
        try:
            url = f"http://127.0.0.1:{source.server_port}/"
            with urllib3.PoolManager() as pool:
                good = pool.request("POST", f"{url}facts", body=b"reading(wt1, 80) .")
                bad = pool.request("POST", f"{url}facts", body=b"reading(wt1, ")
                lost = pool.request("POST", f"{url}elsewhere", body=b"")
        finally:
            source.close()
        assert (good.status, json.loads(good.data)) == (200, {"version": 1})
        assert (bad.status, json.loads(bad.data)["diagnostics"][0]["code"]) == (400, "L001")
        assert lost.status == 404
        assert len(kb.explicit) == 1
