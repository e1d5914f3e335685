"""Answers a query on more rows than fit one task: by a plan, with the answers sorted by the driver.

If the query has a limit, any answers are enough: rows are compared with each other only where too many of the
first ones are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.engine.api import Answer
from zodiacedge.engine.limits import Meter
from zodiacedge.engine.spark.evaluate.seminaive import Node, Setting
from zodiacedge.engine.spark.ingest.batch import SparkBatch
from zodiacedge.engine.spark.lookup.decode import Decoder
from zodiacedge.engine.spark.partition.merge_terms import merged
from zodiacedge.engine.spark.storage.embedded_tables import mentioned
from zodiacedge.engine.spark.storage.files import Relation, Segment, SignedFiles
from zodiacedge.engine.spark.storage.terms import TermFiles, entries_of, refuse_clash, write_terms
from zodiacedge.language.ast import Atom, Fact, Rule
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zodiacedge.engine.api import Settings
    from zodiacedge.engine.spark.evaluate.seminaive import Result
    from zodiacedge.engine.spark.storage.version import SparkVersion
    from zodiacedge.language.ast import Query, Variable
    from zodiacedge.terms import Term

# Names that no predicate of a user can have.
_ANSWERS = "answers to a query"
_PARAMETERS = "values given to a query"


class DistributedQuery:
    """A resolved query on one version."""

    def __init__(
        self, state: SparkVersion, query: Query, parameters: tuple[Variable, ...], settings: Settings
    ) -> None:
        """Take a query and the parameters that get values later."""
        self._state = state
        self._query = query
        self._parameters = parameters
        self._settings = settings

    def answered(self, values: Mapping[Variable, Term]) -> Answer:
        """Answer the query, given a value for each parameter."""
        query, state = self._query, self._state
        workspace, meter = state.workspace, Meter(self._settings.limits)
        body = query.body
        owners = state.owners
        terms = state.terms
        if self._parameters:
            batch = SparkBatch(workspace)
            batch.add([Fact(_PARAMETERS, tuple(values[v] for v in self._parameters))])
            rows = batch.rows()
            contents = {relation: SignedFiles.of(*files) for relation, files in rows.files.items()}
            owners = {**owners, frozenset({_PARAMETERS}): Segment(contents)}
            terms = terms.with_files(*rows.terms.parts)
            body = (Atom(_PARAMETERS, self._parameters, query.span), *body)
        named = [*mentioned(body), *mentioned(query.columns)]
        refuse_clash(workspace.keys(named) | workspace.hashing.keys_of(values.values()), state.terms)
        file = write_terms(workspace.scratch.folder, entries_of(named, workspace.hashing))
        terms = terms.with_files(workspace.adopt(file))

        def watch(rounds: int, facts: int) -> None:
            del rounds, facts
            meter.look("", query.span)

        setting = Setting(workspace, self._settings, workspace.keys(named), owners, owners, watch)
        rule = Rule(Atom(_ANSWERS, query.columns, query.span), body, span=query.span)
        node = Node({"": rule}, setting, terms)
        relation = Relation(_ANSWERS, len(query.columns))
        most = query.limit
        if most is not None and most <= workspace.options.driver_rows:
            keys = node.some(most)
            decoder = self._checked_decoder(node.result, terms)
            answers = decoder.rows(keys[:most])
        else:
            result = node.evaluate()
            facts = self._checked_decoder(result, terms).facts(relation, result.contents.values(), most=most)
            answers = [fact.args for fact in facts]
        answers.sort(key=lambda row: tuple(map(order_key, row)))
        return Answer(tuple(answers), node.result.dropped.get(""))

    def _checked_decoder(self, result: Result, terms: TermFiles) -> Decoder:
        """Return a decoder of a result; raise if a computed term has the fingerprint of another."""
        workspace = self._state.workspace
        new_terms = TermFiles(result.terms.parts[len(terms.parts) :])
        merged(workspace, new_terms, terms, self._settings.yield_point)
        return Decoder(workspace, result.terms)
