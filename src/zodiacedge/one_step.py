"""One step of a pipeline: tables in, rules, tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.io import is_spark_frame
from zodiacedge.kb.answers import library
from zodiacedge.opening import open_kb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.spark.storage.workspace import Options as SparkOptions
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.report import ChangeReport


class Materialized:
    """The tables of a program's predicates, of the kind that went in."""

    def __init__(self, kb: KnowledgeBase, report: ChangeReport, kind: str) -> None:
        """Take the knowledge base, the report of its change, and the library of the tables."""
        self.kb = kb
        self.report = report
        self._kind = kind

    def __getitem__(self, predicate: str) -> Any:  # noqa: ANN401 - a table of the library of the inputs
        """Return the table of a predicate: `ze.materialize({"edge": edges}, rules)["path"]`."""
        return self.table(predicate)

    def table(self, predicate: str, **columns: object) -> Any:  # noqa: ANN401 - as above
        """Return the table of a predicate, with columns named as for `kb.table`."""
        if self._kind == "pyspark":
            return self.kb.table(predicate, **columns)
        rows = self.kb.arrow_table(predicate, **columns)
        if self._kind == "polars":
            return library("polars").from_arrow(rows)
        return rows.to_pandas() if self._kind == "pandas" else rows


def materialize(
    tables: Mapping[str, object], rules: str, *, scratch: str = "", options: SparkOptions | None = None
) -> Materialized:
    """Evaluate rules over tables; the tables of all predicates are in the result.

        paths = ze.materialize({"edge": edges}, "path(X, Y) :- edge(X, Y) . …")["path"]

    DataFrames of Spark are evaluated on their session and give DataFrames of it; data frames of pandas and
    Polars and Arrow tables are evaluated in this process, and give their like.

    Args:
        tables: A table for each relation; or a table and its columns, as for `add_facts`:
            `{"reading": (df, {"sensor": ze.iri("http://farm/{sensor}"), "value": ...})}`.
        rules: The program.
        scratch: A folder for Spark's working files that the whole cluster can access.
        options: Options of the engine `spark`.
    """
    given = {name: table if isinstance(table, tuple) else (table, {}) for name, table in tables.items()}
    for name, (table, _) in given.items():
        if isinstance(table, str):
            hint = f"give the table itself, such as spark.table({table!r})"
            raise UsageProblem(Diagnostic("U013", f"expected a table for {name}, found {table!r}", hint))
    kinds = {type(table).__module__.partition(".")[0] for table, _ in given.values()}
    if len(kinds) > 1:
        message = f"the tables are of several libraries: {', '.join(sorted(kinds))}"
        raise UsageProblem(Diagnostic("U013", message, "give all as one kind of table"))
    frames = [table for table, _ in given.values() if is_spark_frame(table)]
    if frames:
        kb = open_kb(spark=cast("Any", frames[0]).sparkSession, scratch=scratch, options=options)
    else:
        kb = open_kb()
    with kb.change() as change:
        change.add_rules(rules)
        for name, (table, columns) in given.items():
            change.add_facts(table, name, **columns)
    return Materialized(kb, change.report, next(iter(kinds), ""))
