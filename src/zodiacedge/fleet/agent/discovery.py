"""Neighbours that announce themselves by multicast DNS, as facts `zodiac:found(Name, Url)`.

Anybody may announce anything, so nothing follows from it by itself: the rules of the device say from whom it
takes what, `zodiac:neighbour(N, U, "hot") :- zodiac:found(N, U), trusted(U) .` A fact goes when its neighbour
takes leave, or is silent for as long as its announcement lasts.

A device announces itself under a mark that is its own, and says its name beside it: names of devices may be
longer than names of services, and two devices of one name are told apart.
"""

from __future__ import annotations

import ipaddress
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from zeroconf import Error, ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.agent.listener import address_of
from zodiacedge.fleet.agent.published import OWN
from zodiacedge.fleet.trust.metadata import device_name
from zodiacedge.language.ast import fact
from zodiacedge.terms import Literal

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase

FOUND = f"{OWN}found"
_KIND = "_zodiac._tcp.local."
_NAME = "name"
# More devices than a network of devices has; who announces more is not heard.
_MOST = 256


class Announced(NamedTuple):
    """What a device announces."""

    mark: str
    """What tells it from all others, also from those of its name."""
    name: str
    host: str
    port: int


class Discovery:
    """Finds neighbours, and lets this device be found if it serves."""

    def __init__(self, kb: KnowledgeBase, address: str, own: Announced | None) -> None:
        """Look in the network of an address of this machine, and announce what is served there."""
        self._kb = kb
        self._lock = threading.Lock()
        self._found: dict[str, tuple[str, str]] = {}
        """Names and addresses of devices by what they are announced under, the first that was heard first."""
        self._own = ""
        try:
            ipaddress.ip_address(address)
            self._network = Zeroconf(interfaces=[address])
        except (ValueError, OSError) as error:
            raise _no_network(f"cannot look for neighbours from {address}: {error}") from error
        if own is not None:
            info = ServiceInfo(
                _KIND,
                f"{own.mark}.{_KIND}",
                own.port,
                addresses=[ipaddress.ip_address(own.host).packed],
                server=f"{own.mark}.local.",
                properties={_NAME: own.name},
            )
            try:
                # Where somebody else has announced the mark, a number is put behind it.
                self._network.register_service(info, allow_name_change=True)
            except Error as error:
                self._network.close()
                raise _no_network(f"{own.name} cannot be announced in the network: {error}") from error
            self._own = info.name
        self._browser = ServiceBrowser(self._network, _KIND, handlers=[self._changed])

    def close(self) -> None:
        """Take leave."""
        self._network.close()

    def look(self) -> None:
        """Make the facts those of the neighbours that are there by now."""
        named: dict[str, str] = {}
        with self._lock:
            for name, url in self._found.values():
                # A name does not go over to somebody else while the first that had it is there.
                named.setdefault(name, url)
        now = {fact(FOUND, Literal(name), Literal(url)) for name, url in named.items()}
        before = set(self._kb.matching(f"?- <{FOUND}>(N, U) ."))
        if now != before:
            with self._kb.change("neighbours in the local network") as change:
                change.add_facts(sorted(now - before, key=str))
                change.remove_facts(sorted(before - now, key=str))

    def _changed(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        """Note what was announced or taken back; a thread of the library calls it with these names."""
        gone = name == self._own or state_change is ServiceStateChange.Removed
        info = None if gone else zeroconf.get_service_info(service_type, name)
        addresses = info.parsed_addresses() if info else []
        with self._lock:
            if not info or not info.port or not addresses:
                self._found.pop(name, None)
            elif len(self._found) < _MOST or name in self._found:
                with suppress(ValueError):
                    device = device_name(info.decoded_properties.get(_NAME) or "")
                    # What it said first stays until it is taken back.
                    self._found.setdefault(name, (device, address_of(addresses[0], info.port)))


def _no_network(what: str) -> FleetProblem:
    note = "name an address of this machine in the network of the neighbours, such as 10.0.0.2"
    return FleetProblem(Diagnostic("F010", what, note))
