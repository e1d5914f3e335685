"""DuckDB: node after node, by recursive queries where recursion is linear, else by a semi-naive loop.

A predicate is a table of ids with columns c0, c1, and so on. Nodes without recursion are one `INSERT`
per predicate. A node with one predicate whose rules use it once each is one `WITH RECURSIVE`. All others
run in semi-naive rounds: the delta of a round joins with all rows, and known rows are removed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zodiacedge.language.ast import Aggregate, Atom, Comparison, Negation, Variable
from zodiacedge.terms import Literal
from zodiacedge_bench.measure.machine import installed
from zodiacedge_bench.peers.portable import COUNT, arguments, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from zodiacedge.language.ast import Conjunct, Expression, Predicate, Rule
    from zodiacedge_bench.peers.portable import Portable

_INSERT_NEW = "INSERT INTO {0} SELECT * FROM ({1}) EXCEPT SELECT * FROM {0}"


class DuckDB:
    """The peer."""

    name = "duckdb"
    aggregates = COUNT

    def version(self) -> str:
        """Return its version."""
        return installed("duckdb")

    def trial(self, program: Portable) -> DuckDBTrial:
        """Create a database in memory with the facts."""
        return DuckDBTrial(program)


class DuckDBTrial:
    """One evaluation."""

    def __init__(self, program: Portable) -> None:
        """Create a database in memory with the facts."""
        self._program = program
        self._database: Any = import_module("duckdb").connect()
        # Its progress bar would go to standard output.
        self._do("SET enable_progress_bar = false")
        for predicate in program.predicates():
            name, columns = name_of(predicate), _columns(predicate)
            self._do(f"CREATE TABLE {name} ({', '.join(f'{c} INTEGER' for c in columns)})")
            if predicate in program.facts:
                rows = program.facts[predicate]
                self._database.register("facts", {c: rows[:, n].copy() for n, c in enumerate(columns)})
                self._do(f"INSERT INTO {name} FROM facts")
                self._database.unregister("facts")

    def evaluate(self) -> None:
        """Evaluate node after node."""
        for node in self._program.nodes:
            _Node(node, self._do).evaluate()

    def counts(self) -> dict[str, int]:
        """Count the rows of each derived predicate, and close the database."""
        counts = {}
        for predicate in self._program.derived:
            counts[predicate.name] = self._do(f"SELECT count(*) FROM {name_of(predicate)}")  # noqa: S608 - our own names
        self._database.close()
        return counts

    def _do(self, statement: str) -> int:
        # The first value of the result: rows inserted, or a count.
        row = self._database.execute(statement).fetchone()
        return int(row[0]) if row else 0


class _Node:
    def __init__(self, rules: Sequence[Rule], do: Callable[[str], int]) -> None:
        self._rules = rules
        self._do = do
        self._heads = list(dict.fromkeys(rule.head.predicate for rule in rules))

    def evaluate(self) -> None:
        base = [rule for rule in self._rules if not self._recursive(rule)]
        for head in self._heads:
            selects = [_select(rule, {}) for rule in base if rule.head.predicate == head]
            if selects:
                self._do(_INSERT_NEW.format(name_of(head), " UNION ALL ".join(selects)))
        steps = [rule for rule in self._rules if self._recursive(rule)]
        if not steps:
            return
        if len(self._heads) == 1 and all(len(self._recursive(rule)) == 1 for rule in steps):
            self._recursive_query(steps)
        else:
            self._rounds(steps)

    def _recursive(self, rule: Rule) -> list[int]:
        return [
            position
            for position, conjunct in enumerate(rule.body)
            if isinstance(conjunct, Atom) and conjunct.predicate in self._heads
        ]

    def _recursive_query(self, steps: Sequence[Rule]) -> None:
        (head,) = self._heads
        name = name_of(head)
        selects = [_select(rule, {self._recursive(rule)[0]: "closure"}) for rule in steps]
        self._do(
            f"CREATE OR REPLACE TABLE {name} AS WITH RECURSIVE closure AS "  # noqa: S608 - our own names
            f"(SELECT * FROM {name} UNION ({' UNION ALL '.join(selects)})) SELECT * FROM closure"
        )

    def _rounds(self, steps: Sequence[Rule]) -> None:
        names = [name_of(head) for head in self._heads]
        selects: dict[str, list[str]] = {name: [] for name in names}
        for rule in steps:
            for position in self._recursive(rule):
                atom = rule.body[position]
                if isinstance(atom, Atom):
                    delta = f"new_{name_of(atom.predicate)}"
                    selects[name_of(rule.head.predicate)].append(_select(rule, {position: delta}))
        for name in names:
            self._do(f"CREATE TEMP TABLE new_{name} AS FROM {name}")
        grows = True
        while grows:
            grows = False
            for name in names:
                union = " UNION ALL ".join(selects[name])
                self._do(f"CREATE TEMP TABLE next_{name} AS {_except(union, name)}")
            for name in names:
                grows |= self._do(f"INSERT INTO {name} FROM next_{name}") > 0
                self._do(f"DROP TABLE new_{name}")
                self._do(f"ALTER TABLE next_{name} RENAME TO new_{name}")
        for name in names:
            self._do(f"DROP TABLE new_{name}")


def _except(union: str, name: str) -> str:
    return f"SELECT * FROM ({union}) EXCEPT SELECT * FROM {name}"  # noqa: S608 - our own names


def _columns(predicate: Predicate) -> list[str]:
    return [f"c{position}" for position in range(predicate.arity)]


def _select(rule: Rule, sources: Mapping[int, str]) -> str:
    # The rule as a query; `sources` replaces the tables of atoms, by position.
    aggregate = rule.aggregate
    body = aggregate.body if aggregate else rule.body
    seen: dict[Variable, str] = {}
    tables: list[str] = []
    conditions: list[str] = []
    for position, conjunct in enumerate(body):
        if isinstance(conjunct, Atom):
            alias = f"a{position}"
            tables.append(f"{sources.get(position, name_of(conjunct.predicate))} {alias}")
            for column, variable in zip(_columns(conjunct.predicate), arguments(conjunct), strict=True):
                here = f"{alias}.{column}"
                if variable in seen:
                    conditions.append(f"{seen[variable]} = {here}")
                else:
                    seen[variable] = here
    conditions += [condition for conjunct in body if (condition := _condition(conjunct, seen))]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    source = f"FROM {', '.join(tables)}{where}"
    if aggregate is None:
        return f"SELECT {_head(rule, seen)} {source}"
    values = seen | {fold.target: f"count({seen[fold.argument]})" for fold in aggregate.folds}
    return f"SELECT {_head(rule, values)} {source} GROUP BY {', '.join(seen[v] for v in aggregate.groups)}"


def _head(rule: Rule, values: Mapping[Variable, str]) -> str:
    names = zip(arguments(rule.head), _columns(rule.head.predicate), strict=True)
    return ", ".join(f"{values[variable]} AS {column}" for variable, column in names)


def _condition(conjunct: Conjunct, seen: Mapping[Variable, str]) -> str:
    match conjunct:
        case Comparison(left=left, operator=sign, right=right):
            return f"{_value(left, seen)} {sign} {_value(right, seen)}"
        case Negation(atom=atom):
            columns = zip(_columns(atom.predicate), arguments(atom), strict=True)
            equal = " AND ".join(f"n.{column} = {seen[variable]}" for column, variable in columns)
            return f"NOT EXISTS (SELECT 1 FROM {name_of(atom.predicate)} n WHERE {equal})"  # noqa: S608 - our own names
        case Aggregate() | Atom():
            return ""
    message = f"no such conjunct in portable programs: {conjunct}"
    raise NotImplementedError(message)


def _value(expression: Expression, seen: Mapping[Variable, str]) -> str:
    match expression:
        case Variable():
            return seen[expression]
        case Literal(lexical=lexical):
            return lexical
    message = f"no such expression in portable programs: {expression}"
    raise NotImplementedError(message)
