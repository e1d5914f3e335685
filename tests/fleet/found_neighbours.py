"""Devices in the network namespace of this process: some announce themselves, and one finds them."""

from __future__ import annotations

import subprocess
import sys

import zodiacedge as ze
from fleet.running import until
from packs.making import refused
from zodiacedge.fleet.agent.discovery import Discovery

RULE = 'listen: zodiac:neighbour(N, U, "air") :- zodiac:found(N, U), trusted(N) .  trusted("wt1") .'


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)  # noqa: S607 - iproute2


def main() -> None:
    ip("link", "set", "lo", "up", "multicast", "on")
    ip("route", "add", "224.0.0.0/4", "dev", "lo")
    for address in ("192.0.2.1", "nothing"):
        with refused("F010"):
            Discovery(ze.open(), "wt1", address, None)
    kb = ze.open()
    with kb.change() as change:
        change.add_rules(RULE)
    finds = Discovery(kb, "wt2", "127.0.0.1", 8422)

    def told(*neighbours: str) -> None:
        def so() -> bool:
            finds.look()
            return {str(fact) for fact in kb.matching("?- zodiac:found(N, U) .")} == set(neighbours)

        until(so)

    first = Discovery(ze.open(), "wt1", "127.0.0.1", 8421)
    liar = Discovery(ze.open(), "wt9", "127.0.0.1", 8429)
    # It does not announce itself to itself, and a name that is taken is not taken over.
    both = [f'zodiac:found("{n}", "http://127.0.0.1:{p}/")' for n, p in (("wt1", 8421), ("wt9", 8429))]
    told(*both)
    thief = Discovery(ze.open(), "wt1", "127.0.0.1", 8666)
    told(*both, 'zodiac:found("wt1-2", "http://127.0.0.1:8666/")')
    assert [str(fact) for fact in kb.matching("?- zodiac:neighbour(N, U, P) .")] == [
        'zodiac:neighbour("wt1", "http://127.0.0.1:8421/", "air")'
    ]
    thief.close()
    liar.close()
    first.close()
    told()
    finds.close()
    sys.stdout.write("found and gone\n")


if __name__ == "__main__":
    main()
