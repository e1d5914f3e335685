"""The turn: one thread at a time, in the order they came, and it can be passed on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from strategies.waiting import SECONDS, until
from zodiacedge.kb.locks import FairLock
from zodiacedge.util.uninterrupted import uninterrupted


def held(yield_point: FairLock) -> bool:
    return yield_point.is_held_by_caller


def test_nobody_has_it_at_first() -> None:
    yield_point = FairLock()
    assert not held(yield_point)
    assert not yield_point.wanted
    with yield_point:
        assert held(yield_point)
    assert not held(yield_point)


def test_it_is_given_back_when_the_block_fails() -> None:
    yield_point = FairLock()
    with pytest.raises(ZeroDivisionError), yield_point:
        _ = 1 / 0
    assert not held(yield_point)


def test_those_who_wait_get_it_in_the_order_they_came() -> None:
    yield_point, served = FairLock(), list[int]()

    def work(number: int) -> None:
        with yield_point:
            served.append(number)

    with ThreadPoolExecutor(8) as pool, yield_point:
        for number in range(8):
            pool.submit(work, number)
            until(lambda: len(yield_point._queue) > number)  # noqa: B023 - it is asked at once
        assert served == []
    assert served == list(range(8))


def test_its_holder_may_take_it_again() -> None:
    yield_point = FairLock()
    with yield_point:
        with yield_point:
            assert held(yield_point)
        assert held(yield_point)
    assert not held(yield_point)


def test_only_one_has_it() -> None:
    yield_point, inside, most = FairLock(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            with yield_point:
                inside += 1
                most = max(most, inside)
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result(SECONDS)
    assert most == 1


def test_passing_on_serves_all_who_wait_and_comes_back_behind_them() -> None:
    yield_point, served = FairLock(), list[str]()

    def work(name: str) -> None:
        with yield_point:
            served.append(name)

    with ThreadPoolExecutor(3) as pool:
        with yield_point, yield_point:
            for number, name in enumerate(("first", "second")):
                pool.submit(work, name)
                until(lambda: len(yield_point._queue) > number)  # noqa: B023 - it is asked at once
            yield_point.yield_to_waiters()
            served.append("holder")
            assert held(yield_point)
        assert not held(yield_point)
    assert served == ["first", "second", "holder"]


def test_passing_on_to_nobody_keeps_it() -> None:
    yield_point = FairLock()
    with yield_point:
        yield_point.yield_to_waiters()
        assert held(yield_point)


class _Interrupted:
    """What wakes somebody who waits, interrupted once before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lock.acquire()
        self.waited = 0

    def acquire(self) -> bool:
        self.waited += 1
        if self.waited == 1:
            raise KeyboardInterrupt
        return self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


class _InterruptedTurn(FairLock):
    """One where everybody who waits is interrupted, if there is an interruption."""

    interrupting = False

    def _queue_up(self, me: int) -> tuple[int, threading.Lock]:
        place = super()._queue_up(me)
        if self.interrupting:
            place = self._queue[-1] = (me, _Interrupted())  # type: ignore[assignment]
        return place


def test_who_is_interrupted_while_waiting_leaves_the_queue() -> None:
    yield_point = _InterruptedTurn()
    taken, done = threading.Event(), threading.Event()

    def work() -> None:
        with yield_point:
            taken.set()
            done.wait(SECONDS)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(work)
        taken.wait(SECONDS)
        yield_point.interrupting = True
        with pytest.raises(KeyboardInterrupt), yield_point:
            pass
        yield_point.interrupting = False
        assert not yield_point.wanted
        done.set()
        other.result(SECONDS)
    with yield_point:
        assert held(yield_point)


def test_who_is_interrupted_while_passing_on_has_it_again() -> None:
    yield_point, served = _InterruptedTurn(), list[str]()

    def work() -> None:
        with yield_point:
            served.append("other")

    with ThreadPoolExecutor(1) as pool, yield_point:
        other = pool.submit(work)
        until(lambda: yield_point.wanted)
        yield_point.interrupting = True
        with pytest.raises(KeyboardInterrupt):
            yield_point.yield_to_waiters()
        assert held(yield_point)
        other.result(SECONDS)
    assert served == ["other"]
    assert not held(yield_point)


def test_ctrl_c_is_heard_behind_what_must_not_be_torn_apart() -> None:
    steps = []

    def both_steps() -> None:
        with uninterrupted():
            steps.append(1)
            signal_self()
            steps.append(2)
        steps.append(3)

    with pytest.raises(KeyboardInterrupt):
        both_steps()
    assert steps == [1, 2]


def signal_self() -> None:
    import signal  # noqa: PLC0415 - only here

    signal.raise_signal(signal.SIGINT)
