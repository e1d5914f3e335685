"""The store of a hub: facts about devices, rules that decide, and assignments that are signed and written.

The rules and facts of the folder `rules/` are a pack of the store, `fleet`, so an operator's edit is one
change and takes back what it no longer says.
"""

from __future__ import annotations

import json
import threading
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.fleet.hub.codes import Codes
from zodiacedge.fleet.identity import is_signed
from zodiacedge.fleet.trust.keys import ONLINE, key_in
from zodiacedge.fleet.trust.metadata import device_name, write_file
from zodiacedge.fleet.trust.repository import Repository
from zodiacedge.language.ast import Fact, fact
from zodiacedge.opening import open_kb
from zodiacedge.packs.fields import Fields
from zodiacedge.packs.manifest import checked_name
from zodiacedge.packs.source import pack_of_folder
from zodiacedge.terms import Literal, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_STATES = {"active": "worked", "returned": "failed", "refused": "failed"}
_REPORTED = (
    "?- requested(D, P) .",
    "?- status(D, P, V, S) .",
    "?- reason(D, P, V, R) .",
    "?- running(D, P, V, Digest) .",
    "?- stale(D, T) .",
)
_MOST_PACKS = 200
_MOST_REASONS = 10


class Status(NamedTuple):
    """What a device says about itself."""

    device: str
    sequence: int
    packs: dict[str, tuple[int, str, tuple[str, ...]]]
    """Versions and states of packs, and the reasons of a state, by name."""
    running: dict[str, tuple[int, str]]
    """Versions and digests of the packs in force, by name."""
    needs: tuple[str, ...]
    stale: int
    """Since when the device could believe nothing new, in seconds since 1970; 0 if it could."""


class HubState:
    """The store, the repository and the codes of a hub, in a folder."""

    def __init__(self, folder: Path, keys: Path, changed: Callable[[str], object]) -> None:
        """Open a hub's folder; `changed` is called with each device whose assignment is new."""
        self.repository = Repository(folder / "repository")
        self.repository.root()
        self.codes = Codes(folder / "codes")
        self.rules = folder / "rules"
        self.keys = keys
        self._online = key_in(keys, ONLINE)
        self._changed = changed
        self._lock = threading.RLock()
        if not (self.rules / "assign.rules").exists():
            source = files("zodiacedge.fleet.hub").joinpath("assign.rules").read_bytes()
            write_file(self.rules / "assign.rules", source)
        self.kb = open_kb(folder / "store", create=True)
        self._dirty: set[str] = set()
        self.kb.subscribe("assigned/3", lambda notice: self._mark((*notice.inserted, *notice.deleted)))

    def close(self) -> None:
        """Flush and close the store."""
        self.kb.close()

    def take_rules(self) -> bool:
        """Put the folder of rules in force; return whether it differs from what is in force."""
        with self._lock:
            before = self.kb.installed.installed.get("fleet")
            version = before.manifest.version + 1 if before else 1
            manifest = f'name = "fleet"\nversion = {version}\n'
            write_file(self.rules / "pack.toml", manifest.encode())
            pack = pack_of_folder(self.rules)
            if before and before.manifest.digest == pack.manifest.digest:
                return False
            self.kb.install(pack, message="rules of the operator")
            self._sign()
            return True

    def take_published(self) -> bool:
        """State which versions are published; return whether that is new.

        Devices see them before they are assigned: a publication that goes on is waited for.
        """
        with self._lock:
            self.repository.renew(self._online, only_if_needed=True)
            now = {
                _fact("published", name, number)
                for name, versions in self.repository.published().items()
                for number in versions
            }
            before = self.kb.matching("?- published(P, V) .")
            if before == now:
                return False
            with self.kb.change("packs were published") as change:
                change.add_facts(sorted(now - before, key=str))
                change.remove_facts(sorted(before - now, key=str))
            self._sign()
            return True

    def take_key(self) -> None:
        """Read the online key again, and sign everything with it if it is another one."""
        with self._lock:
            before, self._online = self._online, key_in(self.keys, ONLINE)
            if before.public_key.keyid != self._online.public_key.keyid:
                self.renew()

    def renew(self) -> None:
        """Sign what is new or about to expire: snapshot, timestamp and all assignments."""
        with self._lock:
            self.repository.renew(self._online, only_if_needed=True)
            self._dirty.update(self.devices())
            self._sign()

    def devices(self) -> list[str]:
        """Return the devices that enrolled."""
        return sorted(str(value) for (value,) in self.kb.query("?- device(D) ."))

    def enrol(self, document: object) -> bytes:
        """Enrol a device, and return the root that it is to trust; raise if it has no code."""
        fields = Fields(document)
        name, key, given = device_name(fields.text("name")), fields.digest("key"), fields.text("proof")
        with self._lock:
            spent = self.codes.spend(name, key, given)
            if spent is None:
                raise refusal(f"{name} has no code that enrols it", "make one: zodiac enrol HUB NAME")
            before = self.kb.matching("?- key(D, K) .", D=name)
            # A repeated enrolment must not start the numbers of statuses again; a new code does, for a device
            # that lost its own.
            if spent.again and _fact("key", name, key) in before:
                return self.repository.root()
            known = before | self.kb.matching("?- sequence(D, N) .", D=name)
            with self.kb.change(f"enrol {name}") as change:
                change.remove_facts(sorted(known, key=str))
                change.add_facts([_fact("device", name), _fact("key", name, key), _fact("sequence", name, 0)])
                change.add_facts([_fact("group", name, group) for group in spent.groups])
            self._dirty.add(name)
            self._sign()
        return self.repository.root()

    def report(self, body: bytes, signature: str) -> None:
        """Take the status of a device; raise if it is not the device's, or is not new."""
        status = _status(json.loads(body))
        name = status.device
        with self._lock:
            keys = [str(key) for (key,) in self.kb.query(f"?- key({_quoted(name)}, K) .")]
            if not keys or not is_signed(keys[0], body, signature):
                raise refusal(f"a status of {name} is not signed by its key", "enrol the device")
            before = self.kb.matching("?- sequence(D, N) .", D=name)
            last = max((int(_value(each.args[1])) for each in before), default=0)
            if status.sequence <= last:
                why = f"the status {status.sequence} of {name} is not newer than {last}"
                raise refusal(why, "it was sent before")
            new = {_fact("requested", name, pack) for pack in status.needs}
            new |= {_fact("running", name, pack, *what) for pack, what in status.running.items()}
            kept = set()
            if status.stale:
                new.add(_fact("stale", name, status.stale))
            for pack, (version, state, reasons) in status.packs.items():
                new.update(_fact("reason", name, pack, version, reason) for reason in reasons)
                new.add(_fact("status", name, pack, version, state))
                kept.add(_fact("tried", name, pack, version))
                if state in _STATES:
                    kept.add(_fact(_STATES[state], name, pack, version))
            old = {each for query in _REPORTED for each in self.kb.matching(query, D=name)}
            kept -= {each for each in kept if self.kb.matching(f"?- {each} .")}
            with self.kb.change(f"status of {name}") as change:
                change.add_facts(sorted(new - old, key=str))
                change.add_facts(sorted(kept, key=str))
                change.remove_facts(sorted(old - new, key=str))
                change.remove_facts(sorted(before, key=str))
                change.add_facts([_fact("sequence", name, status.sequence)])
            self._sign()

    def _mark(self, facts: Iterable[Fact]) -> None:
        self._dirty.update(str(_value(each.args[0])) for each in facts)

    def _sign(self) -> None:
        """Sign and write the assignments that may have changed."""
        published = self.repository.published() if self._dirty else {}
        while self._dirty:
            device = self._dirty.pop()
            answers = self.kb.query(f"?- assigned({_quoted(device)}, P, V) .")
            packs: dict[str, int] = {}
            for name, version in answers:
                # Rules may say more than is possible; they say it again when it is.
                if isinstance(version, int) and version in published.get(str(name), {}):
                    packs[str(name)] = max(version, packs.get(str(name), 0))
            if self.repository.assign(device, packs, self._online, published):
                self._changed(device)


def refusal(what: str, note: str) -> FleetProblem:
    """Return the problem of a request that a hub refuses."""
    return FleetProblem(Diagnostic("F008", what, note))


def _status(document: object) -> Status:
    fields = Fields(document, "the status")
    packs: dict[str, tuple[int, str, tuple[str, ...]]] = {}
    for name, inner in fields.inner("packs").named_documents().items():
        reasons = inner.texts("reasons")[:_MOST_REASONS]
        packs[checked_name(name)] = inner.number("version"), inner.text("state"), reasons
    running = {
        checked_name(name): (inner.number("version"), inner.digest("digest"))
        for name, inner in fields.inner("running").named_documents().items()
    }
    needs = tuple(checked_name(name) for name in fields.texts("needs"))
    if max(len(packs), len(running), len(needs)) > _MOST_PACKS:
        raise ValueError(f"a status names {_MOST_PACKS} packs at most")
    name, number, stale = (
        device_name(fields.text("device")),
        fields.number("sequence"),
        fields.number("stale", 0),
    )
    return Status(name, number, packs, running, needs, stale)


def _fact(predicate: str, *values: str | int) -> Fact:
    return fact(predicate, *(integer(v) if isinstance(v, int) else Literal(v) for v in values))


def _value(term: object) -> str:
    return term.lexical if isinstance(term, Literal) else str(term)


def _quoted(text: str) -> str:
    return json.dumps(text)
