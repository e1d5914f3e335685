"""Opening a knowledge base, in memory or in a store, on the engine that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from zodiacedge.engine.api import OutOfProcess, Settings
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named, persistence_of
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.kb.arguments import given_version
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from zodiacedge.engine.api import Progress
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


@overload
def open_kb(
    path: None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "embedded",
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> KnowledgeBase: ...
@overload
def open_kb(
    path: str | os.PathLike[str],
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "embedded",
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> StoredKnowledgeBase: ...
def open_kb(  # noqa: PLR0913 - each is an option that users set alone
    path: str | os.PathLike[str] | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "embedded",
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> KnowledgeBase:
    """Open a knowledge base: one in memory, or a store that outlives the process.

    Args:
        path: The folder of a store, or its address, `s3://bucket/name`; without one, everything is in
            memory.
        create: Whether to make the store if there is none.
        read_only: Whether to leave writing to another process, and see the last version it committed.
        at: The version to see, for reading only; the last one if not given.
        functions: What rules may call as `func:name(…)`, by name; the rules of a store may need them at once.
        aggregates: Aggregates likewise.
        engine: Which engine evaluates: `embedded`, `spark`, or `reference`, the definition on Python sets.
        master: Where Spark runs, `local[*]` if not given; `scratch` is a folder for its working files that
            the whole cluster sees, and another `seed` gives terms other fingerprints.
        scratch: See `master`.
        seed: See `master`.
        limits: What one change may use up; the defaults protect a laptop.
        strict: Whether an evaluation error fails the change instead of dropping its binding.
        progress: Called with the node and round at which the engine is.
    """
    registry = Registry()
    for one in functions:
        registry = registry.with_function(one if isinstance(one, Function) else Function(_name(one), one))
    for fold in aggregates:
        registry = registry.with_fold(
            fold if isinstance(fold, AggregateFunction) else AggregateFunction(_name(fold), fold)
        )
    settings = Settings(registry, limits or Limits(), strict, progress)
    chosen = engine_named(engine, master, scratch, seed)
    if progress and isinstance(chosen, OutOfProcess):
        chosen.tell(progress)
    if path is None:
        if create or read_only or at is not None:
            hint = "name its folder: ze.open('farm')"
            raise UsageProblem(Diagnostic("U008", "create, read_only and at are for stores", hint))
        return KnowledgeBase(chosen, settings)
    persistence = persistence_of(engine)
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase  # noqa: PLC0415 - loads Delta and Arrow
    from zodiacedge.store.layout import MARKER  # noqa: PLC0415 - as above
    from zodiacedge.store.location.base import location_of  # noqa: PLC0415 - as above
    from zodiacedge.store.store import DurableStore  # noqa: PLC0415 - as above

    at = None if at is None else given_version(at)
    writable = not read_only and at is None
    place = location_of(path)
    if create and isinstance(chosen, OutOfProcess) and not place.has(MARKER):
        # Nobody wants a new store that he cannot fill.
        chosen.refuse_if_missing()
    store = DurableStore.open(place, create=create, writable=writable, persistence=persistence)
    return StoredKnowledgeBase(chosen, settings, store, at)


def _name(call: Callable[..., object]) -> str:
    found = getattr(call, "__name__", "")
    return found if isinstance(found, str) else ""
