"""Cases of all subjects, one after the other, in a process that may die of them."""

from __future__ import annotations

import multiprocessing
import random
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.files import data
from fuzz.stores import forged, store
from fuzz.texts import program, query, session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from types import FrameType

    Subject = Callable[[random.Random, Path], None]

SUBJECTS: dict[str, Subject] = {
    "program": program,
    "query": query,
    "session": session,
    "data": data,
    "store": store,
    "forged": forged,
}
# A case that takes longer hangs, or does what no small input should ask for; one may have to compile kernels.
LONGEST = 300


class HangsError(BaseException):
    """A case takes too long; what reads files must not take this for a problem of theirs."""


@dataclass
class Tally:
    """How many cases ran, and which of them met a bug."""

    cases: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUBJECTS, 0))
    bugs: list[tuple[str, int, str]] = field(default_factory=list)


def run_case(name: str, seed: int, folder: Path) -> str:
    """Run one case; return what is wrong, or nothing."""

    def hangs(_signal: int, _frame: FrameType | None) -> None:
        raise HangsError(f"longer than {LONGEST} s")

    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(LONGEST)
    try:
        SUBJECTS[name](random.Random(f"{name} {seed}"), folder)
    except BaseException as problem:
        # Libraries in other languages raise what is no Exception.
        if isinstance(problem, KeyboardInterrupt | SystemExit):
            raise
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return ""


def _work(names: Sequence[str], seed: int, until: float, most: int, tell: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + most):
            if time.monotonic() > until:
                break
            for name in names:
                tell.send((name, number, None))
                tell.send((name, number, run_case(name, number, Path(folder))))
    tell.send(None)


def fuzz(names: Sequence[str], seed: int, minutes: float, most: int) -> Tally:
    """Run cases until the time is over or there are so many; go on behind one that ends its process."""
    tally = Tally()
    until = time.monotonic() + 60 * minutes
    spawning = multiprocessing.get_context("spawn")
    at = seed
    while at < seed + most and time.monotonic() < until:
        hear, tell = spawning.Pipe(duplex=False)
        worker = spawning.Process(target=_work, args=(names, at, until, seed + most - at, tell))
        worker.start()
        tell.close()
        under_way: tuple[str, int] | None = None
        try:
            while (news := hear.recv()) is not None:
                name, at, wrong = news
                under_way = name, at
                if wrong is not None:
                    tally.cases[name] += 1
                if wrong:
                    tally.bugs.append((name, at, wrong))
        except EOFError:
            worker.join()
            if under_way is None:
                raise RuntimeError("the process of the cases did not start") from None
            name, at = under_way
            tally.bugs.append((name, at, f"the process ended with {worker.exitcode}"))
            at += 1
            continue
        worker.join()
        break
    return tally
