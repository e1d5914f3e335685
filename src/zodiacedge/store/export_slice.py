"""Writes a slice of a knowledge base as a store of its own, for a device that runs the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.select import engine_named
from zodiacedge.kb.change import Change
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.location.base import location_of
from zodiacedge.store.problems import unregistered
from zodiacedge.store.publish import beside
from zodiacedge.store.store import DurableStore
from zodiacedge.store.versions.restore import missing_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from zodiacedge.engine.api import Settings
    from zodiacedge.kb.slice import Slice
    from zodiacedge.language.checks import Host
    from zodiacedge.store.location.base import Location


def write_slice(  # noqa: PLR0913, PLR0917 - what a knowledge base knows of its slice
    path: str | os.PathLike[str],
    part: Slice,
    message: str,
    prefixes: Mapping[str, str],
    settings: Settings,
    host: Host,
) -> None:
    """Write a slice to a folder or an address that is empty or missing; the store is there whole or not."""
    location = location_of(path)
    check_calls(location, part, host)
    with beside(location) as folder:
        kb = StoredKnowledgeBase(engine_named("embedded"), settings, DurableStore.create(folder))
        with kb:
            change = Change(part.rules, (), tuple(part.facts))
            kb.apply(change, message=message, prefixes=prefixes)


def check_calls(location: Location, found: Slice, host: Host) -> None:
    """Raise if rules that go along call what the host has not registered: they are evaluated here."""
    missing = missing_calls(found.rules, host)
    if missing:
        raise unregistered(location, missing)


# Reading
