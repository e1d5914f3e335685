"""Devices in the network namespace of this process: some announce themselves, and one finds them."""

from __future__ import annotations

import subprocess
import sys
import time

import zodiacedge as ze
from fleet.running import until
from packs.making import refused
from zodiacedge.fleet.agent.discovery import Announced, Discovery

LONG = f"turbine.{'x' * 54}.9"
RULE = 'listen: zodiac:neighbour(N, U, "air") :- zodiac:found(N, U), trusted(N) .  trusted("wt1") .'


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)  # noqa: S607 - iproute2


def announced(mark: str, name: str, port: int) -> Announced:
    return Announced(mark * 20, name, "127.0.0.1", port)


def main() -> None:
    ip("link", "set", "lo", "up", "multicast", "on")
    ip("route", "add", "224.0.0.0/4", "dev", "lo")
    for address in ("192.0.2.1", "nothing"):
        with refused("F010"):
            Discovery(ze.open(), address, None)
    kb = ze.open()
    with kb.change() as change:
        change.add_rules(RULE)
    finds = Discovery(kb, "127.0.0.1", announced("b", "wt2", 8422))

    def told(*neighbours: str) -> None:
        def so() -> bool:
            finds.look()
            return {str(fact) for fact in kb.matching("?- zodiac:found(N, U) .")} == set(neighbours)

        until(so)

    first = Discovery(ze.open(), "127.0.0.1", announced("a", "wt1", 8421))
    # A name may be as long as names of devices are, and have points.
    liar = Discovery(ze.open(), "127.0.0.1", announced("c", LONG, 8429))
    # It does not find itself.
    both = [f'zodiac:found("{n}", "http://127.0.0.1:{p}/")' for n, p in (("wt1", 8421), (LONG, 8429))]
    told(*both)
    # A name that is taken is not taken over, whoever announces it, also under the mark of another device.
    thieves = [Discovery(ze.open(), "127.0.0.1", announced(mark, "wt1", 8666)) for mark in ("d", "a", "b")]
    nameless = Discovery(ze.open(), "127.0.0.1", announced("e", "../x", 8667))
    time.sleep(3)
    told(*both)
    assert [str(fact) for fact in kb.matching("?- zodiac:neighbour(N, U, P) .")] == [
        'zodiac:neighbour("wt1", "http://127.0.0.1:8421/", "air")'
    ]
    nameless.close()
    # Its first owner has left: the name is that of one who announces it still.
    first.close()
    told(both[1], 'zodiac:found("wt1", "http://127.0.0.1:8666/")')
    for other in (*thieves, liar):
        other.close()
    told()
    finds.close()
    sys.stdout.write("found and gone\n")


if __name__ == "__main__":
    main()
