"""The syntax tree: frozen types with source spans that take no part in equality.

Unary atoms are parsed as `rdf:type` atoms: `C(x)` and `rdf:type(x, C)` are one tree. A `Predicate` is a
name and an arity. Each anonymous variable `_` gets a fresh name that cannot be written in a program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.terms import IRI, RDF_TYPE, BlankNode, Literal, Term, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zodiacedge.errors import Span

ANONYMOUS = "_."


class Predicate(NamedTuple):
    """A predicate as users write it: a class has arity 1."""

    name: str
    arity: int


class _Printed:
    """A node whose text is its syntax."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the node as a program writes it, without prefixes but the standard ones."""
        from zodiacedge.language.printer import format_node  # noqa: PLC0415 - imports this module

        return format_node(self)

    def __repr__(self) -> str:
        """Return the type and the syntax."""
        return f"<{type(self).__name__} {self}>"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; its name has no question mark."""

    name: str

    @property
    def anonymous(self) -> bool:
        """Whether the author wrote `_`."""
        return self.name.startswith(ANONYMOUS)


Argument = Term | Variable


@dataclass(frozen=True, slots=True, repr=False)
class Atom(_Printed):
    """A relation applied to terms and variables. Classes are `rdf:type(x, C)`."""

    relation: str
    args: tuple[Argument, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    within: Literal | None = None
    """The length of `atom within length`, as written; `windows` replaces it."""
    shown: tuple[Atom, tuple[Argument, ...]] | None = field(default=None, compare=False, repr=False)
    """The atom that its author wrote, and the arguments of this one that stand for its variables."""
    _predicate: Predicate | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def predicate(self) -> Predicate:
        """The predicate as users write it; `rdf:type` if the class is not a constant IRI."""
        known = self._predicate
        if known is None:
            # Each change compares its rules with those in force by their predicates.
            known = predicate_of(self.relation, self.args)
            object.__setattr__(self, "_predicate", known)
        return known


@dataclass(frozen=True, slots=True, repr=False)
class Fact(_Printed):
    """A ground atom."""

    relation: str
    args: tuple[Term, ...]

    @property
    def predicate(self) -> Predicate:
        """The predicate as users write it."""
        return predicate_of(self.relation, self.args)


def predicate_of(relation: str, args: tuple[Argument, ...]) -> Predicate:
    """Return the predicate as users write it: `rdf:type(x, C)` belongs to the class `C`."""
    if relation == RDF_TYPE and len(args) == 2 and isinstance(args[1], IRI):
        return Predicate(args[1].value, 1)
    return Predicate(relation, len(args))


def atom(name: str, args: tuple[Argument, ...], span: Span | None = None) -> Atom:
    """Return the atom of a predicate and its arguments; a class becomes `rdf:type`."""
    if len(args) == 1:
        return Atom(RDF_TYPE, (args[0], IRI(name)), span)
    return Atom(name, args, span)


def fact(name: str, *args: Term) -> Fact:
    """Return the fact of a predicate and its terms; a class becomes `rdf:type`."""
    if len(args) == 1:
        return Fact(RDF_TYPE, (args[0], IRI(name)))
    return Fact(name, args)


@dataclass(frozen=True, slots=True)
class Now:
    """`now`: the time of the knowledge base. It stands in comparisons of moments only."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """The negative of an expression."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and one of `+ - * / % div **`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a built-in function, or of a registered function (`func:name`)."""

    function: str
    args: tuple[Expression, ...]
    registered: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = IRI | BlankNode | Literal | Variable | Now | Unary | Binary | Call


@dataclass(frozen=True, slots=True)
class Negation:
    """`not atom`."""

    atom: Atom

    @property
    def span(self) -> Span | None:
        """The span of the atom."""
        return self.atom.span


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two expressions and one of `= != < <= > >=`."""

    left: Expression
    operator: str
    right: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


ALWAYS = Comparison(integer(1), "=", integer(1))


@dataclass(frozen=True, slots=True)
class Binding:
    """`variable := expression`."""

    variable: Variable
    expression: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """`op(variable) AS target`: a result of an aggregate; `ARGMAX(variable, by)` has a second argument."""

    op: str
    argument: Variable
    target: Variable
    distinct: bool = False
    registered: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    by: Variable | None = None

    @property
    def arguments(self) -> tuple[Variable, ...]:
        """The variables that it folds."""
        return (self.argument,) if self.by is None else (self.argument, self.by)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`AGGREGATE(body) ON groups WITH folds`."""

    body: tuple[Conjunct, ...]
    groups: tuple[Variable, ...]
    folds: tuple[Fold, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def arguments(self) -> tuple[Variable, ...]:
        """The variables that its folds fold, one after the other."""
        return tuple(argument for fold in self.folds for argument in fold.arguments)

    @property
    def columns(self) -> tuple[Variable, ...]:
        """The variables that are visible outside: groups, then targets."""
        return (*self.groups, *(fold.target for fold in self.folds))


Conjunct = Atom | Negation | Comparison | Binding | Aggregate


@dataclass(frozen=True, slots=True, repr=False)
class Rule(_Printed):
    """A rule `label: head :- body .`, as written."""

    head: Atom
    body: tuple[Conjunct, ...]
    label: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    source: Rule | None = field(default=None, compare=False, repr=False)
    """The rule as its author wrote it, where windows were replaced by atoms."""

    @property
    def states_fact(self) -> bool:
        """Whether its body is what always holds: a fact of a pack is such a rule."""
        return self.body == (ALWAYS,)

    @property
    def aggregate(self) -> Aggregate | None:
        """The rule's aggregate, if it has one."""
        return next((c for c in self.body if isinstance(c, Aggregate)), None)


@dataclass(frozen=True, slots=True, repr=False)
class Query(_Printed):
    """A query. `columns` are the head's terms, or the named variables in order of appearance."""

    columns: tuple[Argument, ...]
    body: tuple[Conjunct, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    head: Atom | None = field(default=None, compare=False, repr=False)
    """The atom in front of `:-`, if there is one."""
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    limit: int | None = None
    """The most rows to return: any of the distinct rows."""


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed program: rules, explicit facts as written, and declared prefixes."""

    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()


def conjuncts(body: Iterable[Conjunct]) -> Iterator[Conjunct]:
    """Yield the conjuncts of a body, including those inside an aggregate."""
    for conjunct in body:
        yield conjunct
        if isinstance(conjunct, Aggregate):
            yield from conjuncts(conjunct.body)


def body_atoms(body: Iterable[Conjunct]) -> Iterator[Atom]:
    """Yield the atoms of a body, including negated and aggregated ones."""
    for conjunct in body:
        if isinstance(conjunct, Atom):
            yield conjunct
        elif isinstance(conjunct, Negation):
            yield conjunct.atom
        elif isinstance(conjunct, Aggregate):
            yield from body_atoms(conjunct.body)


def variables(node: Expression | Conjunct) -> Iterator[Variable]:
    """Yield the variables in order of appearance, including those inside an aggregate."""
    match node:
        case Variable():
            yield node
        case Atom(args=args):
            for arg in args:
                if isinstance(arg, Variable):
                    yield arg
        case Call(args=operands):
            for argument in operands:
                yield from variables(argument)
        case Negation(atom=inner):
            yield from variables(inner)
        case Comparison(left=left, right=right) | Binary(left=left, right=right):
            yield from variables(left)
            yield from variables(right)
        case Unary(operand=operand):
            yield from variables(operand)
        case Binding(variable=variable, expression=expression):
            yield variable
            yield from variables(expression)
        case Aggregate(body=body, groups=groups, folds=folds):
            for conjunct in body:
                yield from variables(conjunct)
            yield from groups
            for fold in folds:
                yield from fold.arguments
                yield fold.target
        case _:
            return


def operands(node: Expression | Conjunct) -> Iterator[Expression]:
    """Yield the arguments and expressions of a conjunct, an expression before its parts.

    The variable of a binding, a constant class and the body of an aggregate are left out.
    """
    match node:
        case Atom(relation=relation, args=(member, IRI())) if relation == RDF_TYPE:
            yield member
        case Atom(args=args):
            yield from args
        case Negation(atom=inner) | Binding(expression=inner):
            yield from operands(inner)
        case Comparison(left=left, right=right):
            yield from operands(left)
            yield from operands(right)
        case Aggregate():
            return
        case Call(args=parts):
            yield node
            for part in parts:
                yield from operands(part)
        case Binary(left=left, right=right):
            yield node
            yield from operands(left)
            yield from operands(right)
        case Unary(operand=inner):
            yield node
            yield from operands(inner)
        case _:
            yield node
