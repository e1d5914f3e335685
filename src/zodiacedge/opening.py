"""Opens a knowledge base, in memory or in a store, on a named engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from zodiacedge.engine.api import OutOfProcess, Settings
from zodiacedge.engine.limits import Limits
from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.engine.select import engine_named, persistence_of
from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.extras import need
from zodiacedge.kb.arguments import given_version, given_wait
from zodiacedge.kb.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from zodiacedge.engine.api import Progress
    from zodiacedge.engine.spark.storage.workspace import Options as SparkOptions
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase


@overload
def open_kb(
    path: None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    wait: float = 0.0,
    clock: str = "",
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "",
    spark: SparkSession | None = None,
    options: SparkOptions | None = None,
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    warn: Callable[[Sequence[Diagnostic]], object] | None = None,
) -> KnowledgeBase: ...
@overload
def open_kb(
    path: str | os.PathLike[str],
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    wait: float = 0.0,
    clock: str = "",
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "",
    spark: SparkSession | None = None,
    options: SparkOptions | None = None,
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    warn: Callable[[Sequence[Diagnostic]], object] | None = None,
) -> StoredKnowledgeBase: ...
def open_kb(  # noqa: PLR0913 - each is an option that users set alone
    path: str | os.PathLike[str] | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    at: int | None = None,
    wait: float = 0.0,
    clock: str = "",
    functions: Iterable[Callable[..., object] | Function] = (),
    aggregates: Iterable[Callable[..., object] | AggregateFunction] = (),
    engine: str = "",
    spark: SparkSession | None = None,
    options: SparkOptions | None = None,
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    warn: Callable[[Sequence[Diagnostic]], object] | None = None,
) -> KnowledgeBase:
    """Open a knowledge base in memory, or a durable one in a store.

    Args:
        path: The folder of a store or its address, `s3://bucket/name`; in memory if not given.
        create: Whether to create the store if it does not exist.
        read_only: Whether to open the last committed version for reading, while another process may write.
        at: The version to open, for reading only; the last one if not given.
        wait: The seconds to wait for another process that has the store open for writing.
        clock: `system` moves the clock to the time of the system with every change; if not given, it moves
            with `tick` only.
        functions: Functions that rules may call as `func:name(…)`; the rules of a store may need them.
        aggregates: Aggregates likewise.
        engine: The engine: `embedded`, `spark`, or `reference`, the definition on Python sets; if not given,
            `spark` with a session, and `embedded` without.
        spark: The Spark session to work on, classic or of Spark Connect; it is never stopped or reconfigured.
        options: Options of the engine `spark`.
        master: The Spark master, `local[*]` if not given.
        scratch: A folder for Spark's working files that the whole cluster can access.
        seed: The seed of the fingerprints of terms on Spark.
        limits: The resources that one change may use; the defaults protect a laptop.
        strict: Whether an evaluation error fails the change instead of dropping its binding.
        progress: Called with the hyper-node and round that the engine has reached.
        warn: Called with the warnings of a change before it is evaluated; its report has them too.
    """
    if clock not in {"", "system"}:
        hint = "clock='system', or leave it out and call kb.tick(…)"
        raise UsageProblem(Diagnostic("U013", f"expected the clock `system`, found {clock!r}", hint))
    registry = Registry()
    for call in functions:
        registry = registry.with_function(call if isinstance(call, Function) else Function(_name(call), call))
    for fold in aggregates:
        registry = registry.with_fold(
            fold if isinstance(fold, AggregateFunction) else AggregateFunction(_name(fold), fold)
        )
    settings = Settings(registry, limits or Limits(), strict, progress, warn=warn)
    if engine == "":
        engine = "embedded" if spark is None else "spark"
    opened = engine_named(engine, master, scratch, seed, session=spark, options=options)
    if progress and isinstance(opened, OutOfProcess):
        opened.tell(progress)
    if path is None:
        if create or read_only or at is not None or wait:
            hint = "name its folder: ze.open('farm')"
            raise UsageProblem(Diagnostic("U008", "create, read_only, at and wait are for stores", hint))
        kb = KnowledgeBase(opened, settings)
        kb.ticks_itself = bool(clock)
        return kb
    need("store", "a store")
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
    stored = StoredKnowledgeBase(opened, settings, store, at)
    stored.ticks_itself = bool(clock)
    return stored


def _name(call: Callable[..., object]) -> str:
    name = getattr(call, "__name__", "")
    return name if isinstance(name, str) else ""
