"""Opens a knowledge base, in memory or in a store, on a named engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from zodiacedge.engine.api import OutOfProcess, Settings
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named, persistence_of
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.kb.arguments import given_version, given_wait
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
    wait: float = 0.0,
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
    wait: float = 0.0,
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
    wait: float = 0.0,
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
    """Open a knowledge base in memory, or a durable one in a store.

    Args:
        path: The folder of a store or its address, `s3://bucket/name`; in memory if not given.
        create: Whether to create the store if it does not exist.
        read_only: Whether to open the last committed version for reading, while another process may write.
        at: The version to open, for reading only; the last one if not given.
        wait: The seconds to wait for another process that has the store open for writing.
        functions: Functions that rules may call as `func:name(…)`; the rules of a store may need them.
        aggregates: Aggregates likewise.
        engine: The engine: `embedded`, `spark`, or `reference`, the definition on Python sets.
        master: The Spark master, `local[*]` if not given.
        scratch: A folder for Spark's working files that the whole cluster can access.
        seed: The seed of the fingerprints of terms on Spark.
        limits: The resources that one change may use; the defaults protect a laptop.
        strict: Whether an evaluation error fails the change instead of dropping its binding.
        progress: Called with the hyper-node and round that the engine has reached.
    """
    registry = Registry()
    for call in functions:
        registry = registry.with_function(call if isinstance(call, Function) else Function(_name(call), call))
    for fold in aggregates:
        registry = registry.with_fold(
            fold if isinstance(fold, AggregateFunction) else AggregateFunction(_name(fold), fold)
        )
    settings = Settings(registry, limits or Limits(), strict, progress)
    opened = engine_named(engine, master, scratch, seed)
    if progress and isinstance(opened, OutOfProcess):
        opened.tell(progress)
    if path is None:
        if create or read_only or at is not None or wait:
            hint = "name its folder: ze.open('farm')"
            raise UsageProblem(Diagnostic("U008", "create, read_only, at and wait are for stores", hint))
        return KnowledgeBase(opened, settings)
    persistence = persistence_of(engine)
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase  # noqa: PLC0415 - loads Delta and Arrow
    from zodiacedge.store.layout import MARKER  # noqa: PLC0415 - as above
    from zodiacedge.store.location.base import location_of  # noqa: PLC0415 - as above
    from zodiacedge.store.store import DurableStore  # noqa: PLC0415 - as above

    at = None if at is None else given_version(at)
    writable = not read_only and at is None
    location = location_of(path)
    if create and isinstance(opened, OutOfProcess) and not location.has(MARKER):
        # Fail before the store is created, not when it is filled.
        opened.refuse_if_missing()
    store = DurableStore.open(
        location, create=create, writable=writable, persistence=persistence, wait=given_wait(wait)
    )
    return StoredKnowledgeBase(opened, settings, store, at)


def _name(call: Callable[..., object]) -> str:
    name = getattr(call, "__name__", "")
    return name if isinstance(name, str) else ""
