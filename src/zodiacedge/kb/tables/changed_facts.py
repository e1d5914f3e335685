"""The facts that a change inserted, or those that it deleted: a set, and tables of one predicate."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, cast

from zodiacedge.engine.api import ChangesFrames
from zodiacedge.io import spark_frame
from zodiacedge.kb.answers import library, session_for
from zodiacedge.kb.tables.predicates import columns_for, predicate_of
from zodiacedge.language.ast import Fact, Predicate
from zodiacedge.language.printer import format_atom

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from zodiacedge.engine.api import NetChange
    from zodiacedge.io.formats.column_mapping import ColumnMapping
    from zodiacedge.terms import IRI


class ChangedFacts(AbstractSet[Fact]):
    """The facts that a change inserted or deleted, listed at first use.

    Called with a predicate, it is the table of its facts: `report.inserted("alarm").to_spark()`.
    """

    def __init__(
        self,
        net: NetChange,
        known: Callable[[], Collection[Predicate]],
        prefixes: Mapping[str, str],
        *,
        inserted: bool,
    ) -> None:
        """Take one side of a net change, and the predicates that the program knows."""
        self._net = net
        self._known = known
        self._prefixes = prefixes
        self._inserted = inserted

    @cached_property
    def _facts(self) -> frozenset[Fact]:
        return self._net.facts()[not self._inserted]

    @classmethod
    def _from_iterable(cls, facts: Iterable[Fact]) -> frozenset[Fact]:  # type: ignore[override] # not lazy any more
        return frozenset(facts)

    def __contains__(self, fact: object) -> bool:
        """Return whether a fact is among them."""
        return fact in self._facts

    def __iter__(self) -> Iterator[Fact]:
        """Yield the facts."""
        return iter(self._facts)

    def __len__(self) -> int:
        """Return the number of facts."""
        return sum(self._net.counts()[not self._inserted].values())

    def __eq__(self, other: object) -> bool:
        """Whether another set has the same facts."""
        return self._facts == (other._facts if isinstance(other, ChangedFacts) else other)

    def __hash__(self) -> int:
        """Return the hash of the set."""
        return hash(self._facts)

    def __repr__(self) -> str:
        """Return the facts as a set."""
        return repr(self._facts)

    def __call__(self, predicate: str | IRI | Predicate, **columns: object) -> ChangedTable:
        """Return the facts of a predicate as a table.

        Args:
            predicate: `p`, `p/1`, `ex:p`, `<http://e/p>` or an IRI.
            columns: The names of the columns, each `...` or the template that its terms were made of, as for
                `add_facts`; `c1`, `c2` and so on if not given.
        """
        known = {*self._known()}.union(*self._net.counts())
        found = predicate_of(predicate, known, self._prefixes, len(columns))
        return ChangedTable(self._net, found, columns_for(found, columns), inserted=self._inserted)


class ChangedTable:
    """The facts of one predicate that a change inserted or deleted, as a table."""

    def __init__(
        self, net: NetChange, predicate: Predicate, mapping: ColumnMapping, *, inserted: bool
    ) -> None:
        """Take the facts of a predicate."""
        self._net = net
        self._predicate = predicate
        self._mapping = mapping
        self._inserted = inserted

    def to_arrow(self) -> pa.Table:
        """Return the facts as an Arrow table."""
        from zodiacedge import io  # noqa: PLC0415 - loads pyarrow

        facts = self._net.facts(lambda predicate: predicate == self._predicate)[not self._inserted]
        wanted = sorted((f for f in facts if f.predicate == self._predicate), key=format_atom)
        names = [argument.name for argument in self._mapping.arguments]
        return self._mapping.inverse(io.table_of([fact.args for fact in wanted], names))

    def to_polars(self) -> pl.DataFrame:
        """Return the facts as a Polars data frame."""
        return cast("pl.DataFrame", library("polars").from_arrow(self.to_arrow()))

    def to_pandas(self) -> pd.DataFrame:
        """Return the facts as a pandas data frame."""
        library("pandas")
        return cast("pd.DataFrame", self.to_arrow().to_pandas())

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the facts as a DataFrame of Spark, of the session of the knowledge base if none is given."""
        if spark is None and isinstance(self._net, ChangesFrames):
            return self._net.frame(self._predicate, self._mapping, inserted=self._inserted)
        return spark_frame(session_for(spark), self.to_arrow())
