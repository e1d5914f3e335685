"""Selection of an engine by name; its modules are imported only when it is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, StoreProblem, UsageProblem, nearest
from zodiacedge.extras import need

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.persistence import AnyPersistence
    from zodiacedge.engine.spark.storage.workspace import Options

ENGINES = ("embedded", "reference")
# The engine spark also needs Java and PySpark.
ALL_ENGINES = (*ENGINES, "spark")
STORE_ENGINES = ("embedded", "spark")


def engine_named(  # noqa: PLR0913 - each is an option that users set alone
    name: str,
    master: str = "",
    scratch: str = "",
    seed: int = 0,
    *,
    session: SparkSession | None = None,
    options: Options | None = None,
) -> Engine:
    """Return an engine; all but the name are options of the engine spark."""
    if name not in ALL_ENGINES:
        near = nearest(str(name), ALL_ENGINES)
        raise UsageProblem(
            Diagnostic(
                "U001",
                f"there is no engine {name}",
                f"did you mean {near}?" if near else f"choose one of: {', '.join(ALL_ENGINES)}",
            )
        )
    if name != "spark" and (master or scratch or seed or session is not None or options is not None):
        message = f"the engine {name} has no session, master, scratch, seed or options"
        raise UsageProblem(Diagnostic("U017", message, 'choose engine="spark"'))
    if name == "spark":
        need("spark", "the engine spark")
        from zodiacedge.engine.spark.engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(master, scratch=scratch, seed=seed, session=session, options=options)
    if name == "reference":
        from zodiacedge.engine.reference import ReferenceEngine  # noqa: PLC0415

        return ReferenceEngine()
    from zodiacedge.engine.embedded.engine import EmbeddedEngine  # noqa: PLC0415

    return EmbeddedEngine()


def persistence_of(engine: str) -> AnyPersistence:
    """Return the persistence adapter of an engine."""
    if engine == "embedded":
        from zodiacedge.engine.embedded.persistence.adapter import EmbeddedPersistence  # noqa: PLC0415 - loads Arrow

        return EmbeddedPersistence()
    if engine == "spark":
        from zodiacedge.engine.spark.persistence.adapter import SparkPersistence  # noqa: PLC0415 - heavy

        return SparkPersistence()
    raise StoreProblem(
        Diagnostic(
            "D011", f"the engine {engine} cannot open a store", 'choose engine="embedded" or engine="spark"'
        )
    )
