"""Neighbours that announce themselves by multicast DNS, as facts `zodiac:found(Name, Url)`.

Anybody may announce anything, so nothing follows from it by itself: the rules of the device say from whom it
takes what, `zodiac:neighbour(N, U, "hot") :- zodiac:found(N, U), trusted(N) .` A fact goes when its neighbour
takes leave, or is silent for as long as its announcement lasts.
"""

from __future__ import annotations

import ipaddress
import threading
from typing import TYPE_CHECKING

from zeroconf import Error, ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.agent.published import OWN
from zodiacedge.fleet.trust.metadata import device_name
from zodiacedge.language.ast import fact
from zodiacedge.terms import Literal

if TYPE_CHECKING:
    from zodiacedge.kb.knowledge_base import KnowledgeBase

FOUND = f"{OWN}found"
_KIND = "_zodiac._tcp.local."
# More devices than a network of devices has; who announces more is not heard.
_MOST = 256


class Discovery:
    """Finds neighbours, and lets this device be found if it serves."""

    def __init__(self, kb: KnowledgeBase, name: str, address: str, port: int | None) -> None:
        """Look in the network of an address of this machine; with a port, announce what is served there."""
        self._kb, self._name = kb, name
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        try:
            host = ipaddress.ip_address(address)
            self._network = Zeroconf(interfaces=[address])
        except (ValueError, OSError) as error:
            note = "name an address of this machine in the network of the neighbours, such as 10.0.0.2"
            raise FleetProblem(
                Diagnostic("F010", f"cannot look for neighbours from {address}: {error}", note)
            ) from error
        if port is not None:
            instance, server = f"{name}.{_KIND}", f"{name}.local."
            # Where another device has announced the name, a number is put behind it.
            try:
                self._network.register_service(
                    ServiceInfo(_KIND, instance, port, addresses=[host.packed], server=server),
                    allow_name_change=True,
                )
            except Error as error:
                self._network.close()
                note = "leave --discover out, or give the device a name of at most 63 letters"
                message = f"{name} cannot be announced in the network: {error}"
                raise FleetProblem(Diagnostic("F010", message, note)) from error
        self._browser = ServiceBrowser(self._network, _KIND, handlers=[self._changed])

    def close(self) -> None:
        """Take leave."""
        self._network.close()

    def look(self) -> None:
        """Make the facts those of the neighbours that are there by now."""
        with self._lock:
            now = {fact(FOUND, Literal(name), Literal(url)) for name, url in self._found.items()}
        before = set(self._kb.matching(f"?- <{FOUND}>(N, U) ."))
        if now != before:
            with self._kb.change("neighbours in the local network") as change:
                change.add_facts(sorted(now - before, key=str))
                change.remove_facts(sorted(before - now, key=str))

    def _changed(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        """Note what was announced or taken back; a thread of the library calls it with these names."""
        gone = state_change is ServiceStateChange.Removed
        info = None if gone else zeroconf.get_service_info(service_type, name)
        name = name.removesuffix(f".{_KIND}")
        addresses = info.parsed_addresses() if info else []
        try:
            device_name(name)
        except ValueError:
            return
        with self._lock:
            if not info or not info.port or not addresses:
                self._found.pop(name, None)
            elif name != self._name and (name in self._found or len(self._found) < _MOST):
                host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
                # The first address stays until it is taken back: a name does not go over to somebody else.
                self._found.setdefault(name, f"http://{host}:{info.port}/")
