"""Writes a slice of a knowledge base as a store, for a device that runs the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.select import engine_named
from zodiacedge.kb.change import Change
from zodiacedge.store.atomic_publish import atomic_publish
from zodiacedge.store.knowledge_base import StoredKnowledgeBase
from zodiacedge.store.location.base import location_of
from zodiacedge.store.problems import unregistered
from zodiacedge.store.store import DurableStore
from zodiacedge.store.versions.restore import missing_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from zodiacedge.engine.api import Settings
    from zodiacedge.kb.slice import Slice
    from zodiacedge.language.checks import Host


def write_slice(  # noqa: PLR0913, PLR0917 - what a knowledge base knows of its slice
    path: str | os.PathLike[str],
    slice_: Slice,
    message: str,
    prefixes: Mapping[str, str],
    settings: Settings,
    host: Host,
) -> None:
    """Write a slice to an empty or missing folder or address, atomically."""
    location = location_of(path)
    # The rules are evaluated here, before the store is published.
    missing = missing_calls(slice_.rules, host)
    if missing:
        raise unregistered(location, missing)
    with atomic_publish(location) as folder:
        kb = StoredKnowledgeBase(engine_named("embedded"), settings, DurableStore.create(folder))
        with kb:
            change = Change(slice_.rules, (), tuple(slice_.facts), accepted=True)
            kb.apply(change, message=message, prefixes=prefixes)
