"""Selection of an engine by name; its modules are imported only when it is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, StoreProblem, UsageProblem, nearest

if TYPE_CHECKING:
    from zodiacedge.engine.api import Engine
    from zodiacedge.engine.persistence import AnyPersistence

ENGINES = ("embedded", "reference")
# The engine spark also needs Java and PySpark.
ALL_ENGINES = (*ENGINES, "spark")
STORE_ENGINES = ("embedded", "spark")


def engine_named(name: str, master: str = "", scratch: str = "", seed: int = 0) -> Engine:
    """Return an engine; `master`, `scratch` and `seed` are options of the engine spark."""
    if name not in ALL_ENGINES:
        near = nearest(str(name), ALL_ENGINES)
        raise UsageProblem(
            Diagnostic(
                "U001",
                f"there is no engine {name}",
                f"did you mean {near}?" if near else f"choose one of: {', '.join(ALL_ENGINES)}",
            )
        )
    if name != "spark" and (master or scratch or seed):
        raise UsageProblem(
            Diagnostic("U017", f"the engine {name} has no master, scratch or seed", 'choose engine="spark"')
        )
    if name == "spark":
        from zodiacedge.engine.spark.engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(master, scratch=scratch, seed=seed)
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
