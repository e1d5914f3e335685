"""Semantic checks of a program that parses.

`RULE_CHECKS` take one rule, `PROGRAM_CHECKS` rules and facts together; each is a function that yields
findings independently of the other checks. `TEXT_CHECKS` take one rule too, and find mistakes that evaluation
has a meaning for: a stored rule is not refused for them. Stratification is left to `graph.stratify`, the
analysis of bindings to `safety`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zodiacedge.errors import CheckProblem, Diagnostic, Span, counted, nearest
from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binding,
    Call,
    Fact,
    Negation,
    Predicate,
    Query,
    Rule,
    Variable,
    body_atoms,
    conjuncts,
    operands,
    variables,
)
from zodiacedge.language.canonical import KeyedRule, keyed
from zodiacedge.language.lint.namesakes import Namesakes, namesake_finding
from zodiacedge.language.printer import format_argument, format_predicate
from zodiacedge.language.safety import Analysis, analyse
from zodiacedge.language.unify import Pattern, pattern_of, unify
from zodiacedge.language.vocabulary import (
    AGGREGATES,
    CHOOSING,
    CONDITIONS,
    FUNCTIONS,
    KEEP_RELATION,
    LATEST,
    TIME_RELATION,
)
from zodiacedge.language.windows import has_windows, misplaced_now, untimed_windows
from zodiacedge.terms import IRI, RDF_TYPE, XSD_STRING, Literal, value_of
from zodiacedge.util.regular_expressions import compiled
from zodiacedge.util.spelling import Spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Host:
    """Names of registered functions and aggregates; None if they are unknown."""

    functions: Collection[str] | None = None
    aggregates: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to check: its rules, its explicit facts, and the predicates of facts loaded with it.

    If it extends a program that was checked before, `passed` are the rules of that program that share a
    predicate with the change, and `names` returns the names of all defined predicates. `distinct` says that
    no rule occurs twice, which takes time to find out; `accepted`, that the rules were in force before.
    """

    rules: tuple[Rule, ...]
    facts: tuple[Atom, ...] = ()
    loaded: Collection[Predicate] = ()
    host: Host = field(default_factory=Host)
    passed: tuple[Rule, ...] = ()
    names: Callable[[], Iterable[str]] = tuple
    distinct: bool = False
    accepted: bool = False
    times: Callable[[], Mapping[str, int]] | None = None
    """Returns the argument that is the time of each predicate; those of the facts if not given."""
    keyed: Callable[[Rule], KeyedRule] = keyed
    """Returns the key of a rule; one that remembers keys saves computing them again."""
    checked: Collection[Rule] = ()
    """Rules that were checked by themselves, but for what the host registered."""

    @property
    def together(self) -> tuple[Rule, ...]:
        """All rules, the passed ones first."""
        return (*self.passed, *self.rules)


def check(subject: Subject) -> list[Diagnostic]:
    """Return every finding about a program, in text order."""
    checks = RULE_CHECKS if subject.accepted else (*RULE_CHECKS, *TEXT_CHECKS)
    findings: list[Diagnostic] = []
    for rule in subject.rules:
        of_rule = (known_functions,) if rule in subject.checked else checks
        findings += [d for run in of_rule for d in run(rule, subject.host)]
    return sorted(findings + check_together(subject), key=text_order)


def check_each(rules: Iterable[Rule], host: Host) -> list[Diagnostic]:
    """Return the findings about each rule by itself."""
    return [d for rule in rules for run in (*RULE_CHECKS, *TEXT_CHECKS) for d in run(rule, host)]


def check_together(subject: Subject) -> list[Diagnostic]:
    """Return the findings about rules and facts as one program."""
    return [d for run in PROGRAM_CHECKS for d in run(subject)]


def check_query(query: Query, host: Host, parameters: Iterable[Variable] = ()) -> list[Diagnostic]:
    """Return every finding about a query with these parameters."""
    head = Atom("ans", query.columns, query.span)
    # The checks treat parameters as bound by an atom.
    rule = Rule(head, (Atom("given", tuple(parameters)), *query.body), span=query.span)
    return check_each((rule,), host)


def text_order(finding: Diagnostic) -> tuple[str, int]:
    """Return the key that sorts findings by their position, those without one first."""
    return (finding.span.source.name, finding.span.start) if finding.span else ("", -1)


# One rule


def safe_variables(rule: Rule, _host: Host) -> Iterator[Diagnostic]:
    """Check that every variable of the head, of a comparison and of an expression is bound."""
    analysis = analyse(rule.body)
    head = [(v, "the head", rule.head.span or rule.span) for v in variables(rule.head)]
    yield from _unbound(analysis, head, "")
    yield from _body_findings(analysis)
    aggregate = rule.aggregate
    if aggregate:
        inner = analyse(aggregate.body)
        uses = [(v, "ON", aggregate.span) for v in aggregate.groups]
        uses += [(v, fold.op, fold.span) for fold in aggregate.folds for v in fold.arguments]
        yield from _unbound(inner, uses, " inside the AGGREGATE")
        yield from _body_findings(inner)


def _unbound(
    analysis: Analysis, uses: list[tuple[Variable, str, Span | None]], inside: str
) -> Iterator[Diagnostic]:
    # Each variable is reported once, at its first use; one that depends on another unbound one is not.
    for v, conjunct in analysis.unbound:
        uses.append((v, "a binding" if isinstance(conjunct, Binding) else "a comparison", conjunct.span))
    reported = {*analysis.bound, *analysis.waiting, *analysis.ambiguous}
    for v, where, span in uses:
        if v in reported:
            continue
        reported.add(v)
        note = f"bind it{inside or ' in the body'}: in a positive atom, or with "
        note += f"{format_argument(v)} := expression"
        if v.anonymous:
            note = "`_` is a fresh variable each time: give it a name and bind it"
        elif not v.name.isupper() and v.name[:1].isupper():
            note += f"; as a constant write <{v.name}>, or its name in lower case"
        yield Diagnostic("C001", f"{format_argument(v)} in {where} is bound by nothing{inside}", note, span)


def _body_findings(analysis: Analysis) -> Iterator[Diagnostic]:
    for binding in analysis.rebound:
        yield Diagnostic(
            "C002",
            f"{format_argument(binding.variable)} is bound already",
            "to compare, write COMP(a, =, b); to bind, choose a fresh variable",
            binding.span,
        )
    for v, equalities in analysis.ambiguous.items():
        spans = [c.span for c in equalities]
        yield Diagnostic(
            "C003",
            f"{'two' if len(spans) == 2 else 'several'} equalities could bind {format_argument(v)}",
            f"say which one binds it: {format_argument(v)} := expression",
            spans[0],
            related=tuple(("and here", s) for s in spans[1:] if s),
        )
    for v in analysis.shared_existentials:
        spans = [c.span for c in analysis.body if isinstance(c, Negation) and v in variables(c)]
        yield Diagnostic(
            "C004",
            f"{format_argument(v)} is shared by two negated atoms and bound by nothing positive",
            "bind it in a positive atom, or rename it in one of them: `not p(X, Z)` says there is no Z",
            spans[0],
            related=tuple(("and here", s) for s in spans[1:] if s),
        )


def sound_aggregate(rule: Rule, _host: Host) -> Iterator[Diagnostic]:
    """Check that a rule has at most one aggregate, not nested, with fresh result variables."""
    aggregates = [c for c in rule.body if isinstance(c, Aggregate)]
    for extra in aggregates[1:]:
        yield Diagnostic("C005", "a rule holds at most one AGGREGATE", "split it into two rules", extra.span)
    for aggregate in aggregates:
        for nested in aggregate.body:
            if isinstance(nested, Aggregate):
                yield Diagnostic(
                    "C006",
                    "an AGGREGATE cannot stand inside another",
                    "give the inner one a rule and a predicate of its own",
                    nested.span,
                )
        inner = {v for c in aggregate.body for v in variables(c)}
        targets = Counter(fold.target for fold in aggregate.folds)
        for fold in aggregate.folds:
            if fold.target in inner or fold.target in aggregate.groups or targets[fold.target] > 1:
                yield Diagnostic(
                    "C007",
                    f"the result {format_argument(fold.target)} is in use already",
                    "a result needs a fresh variable",
                    fold.span,
                )
        yield from _confusing_names(rule, aggregate, inner)


def _confusing_names(rule: Rule, aggregate: Aggregate, inner: set[Variable]) -> Iterator[Diagnostic]:
    outside = {v for c in rule.body if c is not aggregate for v in variables(c)} | set(variables(rule.head))
    for v in sorted((inner & outside).difference(aggregate.columns), key=lambda v: v.name):
        yield Diagnostic(
            "W001",
            f"{format_argument(v)} inside the AGGREGATE is not the {format_argument(v)} outside",
            f"to join them, add {format_argument(v)} to ON; otherwise rename one",
            aggregate.span,
            "warning",
        )


def known_functions(rule: Rule, host: Host) -> Iterator[Diagnostic]:
    """Check that functions and aggregates exist, and the number of arguments of functions."""
    for call in (o for c in conjuncts(rule.body) for o in operands(c) if isinstance(o, Call)):
        if call.registered:
            if host.functions is not None and call.function not in host.functions:
                yield _unregistered("function", f"func:{call.function}", host.functions, call.span)
            continue
        low, high = FUNCTIONS[call.function]
        if len(call.args) < low or (high is not None and len(call.args) > high):
            takes = counted(low, "argument")
            if low != high:
                takes = f"{low} or {high or 'more'} arguments"
            yield Diagnostic(
                "C008",
                f"{call.function} takes {takes}, not {len(call.args)}",
                "see the list of functions in the language reference",
                call.span,
            )
    known = (*AGGREGATES, *CHOOSING, LATEST, *(host.aggregates or ()))
    for fold in rule.aggregate.folds if rule.aggregate else ():
        if fold.registered and host.aggregates is not None and fold.op not in host.aggregates:
            yield _unregistered("aggregate", fold.op, known, fold.span)


def regular_expressions(rule: Rule, _host: Host) -> Iterator[Diagnostic]:
    """Check that the pattern of `regex` is a regular expression, where pattern and flags are constant."""
    for call in (o for c in conjuncts(rule.body) for o in operands(c) if isinstance(o, Call)):
        if call.function != "regex" or call.registered:
            continue
        texts = [a.lexical for a in call.args[1:] if isinstance(a, Literal) and a.datatype == XSD_STRING]
        if not texts or len(texts) != len(call.args) - 1 or len(texts) > 2:
            continue
        try:
            compiled(texts[0], "".join(texts[1:]))
        except ValueError as problem:
            note = 'the syntax is XPath\'s; a backslash is written twice in a string: "\\\\d+"'
            yield Diagnostic("C017", str(problem), note, call.span)


def window_conditions(rule: Rule, _host: Host) -> Iterator[Diagnostic]:
    """Check that `now` is the bound of a window wherever it stands."""
    yield from misplaced_now(rule)


def _unregistered(kind: str, name: str, known: Collection[str], span: Span | None) -> Diagnostic:
    near = nearest(name.removeprefix("func:"), tuple(known))
    hint = f"did you mean {near}?" if near else f"the host registers it with @kb.{kind}"
    return Diagnostic("C009", f"no {kind} {name} is registered", hint, span)


# Rules and facts together


def unique_labels(subject: Subject) -> Iterator[Diagnostic]:
    """Check that a label names one rule."""
    first: dict[str, Rule] = {}
    for rule in subject.together:
        if not rule.label:
            continue
        other = first.setdefault(rule.label, rule)
        if other is not rule and not _same(other, rule):
            yield Diagnostic(
                "C010",
                f"the label {rule.label} is in use",
                "choose another label; to replace the rule in force, --replace or replace=True",
                rule.span,
                related=(("first used here", other.span),) if other.span else (),
            )


def repeated_rules(subject: Subject) -> Iterator[Diagnostic]:
    """Warn about rules that occur twice, whatever their labels."""
    first: dict[str, Rule] = {}
    for rule in () if subject.distinct else subject.rules:
        try:
            key, _ = subject.keyed(rule)
        except CheckProblem as problem:
            yield from problem.diagnostics
            continue
        other = first.setdefault(key, rule)
        if other is not rule:
            yield Diagnostic(
                "W002",
                "this rule is there already, up to variable names and the order of the body",
                "remove one of them",
                rule.span,
                "warning",
                related=(("first written here", other.span),) if other.span else (),
            )


def _same(rule: Rule, other: Rule) -> bool:
    try:
        return keyed(rule).key == keyed(other).key
    except CheckProblem:
        return False


def one_arity(subject: Subject) -> Iterator[Diagnostic]:
    """Check that a predicate has one arity; only a class and a property may share a name."""
    predicates = {*subject.loaded, *(atom.predicate for atom in _atoms(subject))}
    if len({name for name, _ in predicates}) == len(predicates):
        return
    first: dict[str, dict[int, Span | None]] = {}
    for (name, arity), span in [
        *((predicate, None) for predicate in sorted(subject.loaded)),
        *((atom.predicate, atom.span) for atom in _atoms(subject)),
    ]:
        arities = first.setdefault(name, {})
        if arity in arities:
            continue
        clash = next((a for a in arities if {a, arity} != {1, 2}), None)
        arities[arity] = span
        if clash is not None:
            other_span = arities[clash]
            here, elsewhere = "here", "elsewhere" if other_span else "in loaded facts"
            if not span:
                here, elsewhere = "in some loaded facts", "in others"
            shown = format_predicate(name)
            yield Diagnostic(
                "C011",
                f"{shown} has {counted(arity, 'argument')} {here} and {clash} {elsewhere}",
                "one predicate has one arity: rename one of them",
                span,
                related=(("elsewhere is here", other_span),) if other_span else (),
            )


def sole_aggregate_rule(subject: Subject) -> Iterator[Diagnostic]:
    """Check that the head of an aggregate rule has no other rule and no explicit facts."""
    if not any(isinstance(c, Aggregate) for rule in subject.together for c in rule.body):
        return
    by_relation: dict[str, list[tuple[int, Rule, Pattern]]] = {}
    for position, rule in enumerate(subject.together):
        by_relation.setdefault(rule.head.relation, []).append((position, rule, pattern_of(rule.head)))
    explicit: dict[str, list[tuple[Atom, Pattern]]] = {}
    for atom in subject.facts:
        explicit.setdefault(atom.relation, []).append((atom, pattern_of(atom)))
    for position, rule in enumerate(subject.together):
        if rule.aggregate is None:
            continue
        shown = format_predicate(rule.head.predicate.name)
        head = pattern_of(rule.head)
        for other_position, other, pattern in by_relation[rule.head.relation]:
            # Of two aggregates the later one is reported.
            if other_position == position or (other.aggregate and other_position < position):
                continue
            if unify(head, pattern) and not _same(rule, other):
                yield Diagnostic(
                    "C012",
                    f"{shown} is defined by an aggregate, so it may have no other rule",
                    "give one of the two another predicate",
                    other.span,
                    related=(("the aggregate", rule.span),) if rule.span else (),
                )
        for atom, pattern in explicit.get(rule.head.relation, ()):
            if unify(head, pattern):
                yield Diagnostic(
                    "C013",
                    f"{shown} is defined by an aggregate, so it may have no explicit facts",
                    "state the facts under another predicate",
                    atom.span,
                )


def familiar_names(subject: Subject) -> Iterator[Diagnostic]:
    """Warn about predicates that no rule defines and no fact uses, if a similar name or a function exists."""
    names = _founded(subject)
    unknown: dict[str, Atom] = {}
    # Passed rules were checked when they were added.
    for rule in subject.rules:
        for atom in body_atoms(rule.body):
            name = atom.predicate.name
            if name not in names and name != RDF_TYPE:
                unknown.setdefault(name, atom)
    if not unknown:
        return
    names = names.union(subject.names())
    spelling, namesakes = Spelling(names), Namesakes(names)
    for name, atom in unknown.items():
        same = namesakes.find(name)
        if same:
            lifted = _lifted(subject)
            same = [known for known in same if (known, name) not in lifted]
        if same and not (atom.predicate.arity == 1 and RDF_TYPE in names):
            yield namesake_finding(atom, same)
            continue
        near = spelling.nearest(name)
        note = f"did you mean {format_predicate(near)}?" if near else ""
        if name.lower() in CONDITIONS:
            note = f"a conjunct that calls the function is a comparison: {name}(…) = true"
        if note:
            message = f"no rule defines {format_predicate(name)} and no fact uses it"
            yield Diagnostic("W003", message, note, atom.span, "warning")


def _founded(subject: Subject) -> set[str]:
    """Return the names that facts use, or that a rule defines which does not need facts of the same name."""
    heads: set[str] = set()
    for rule in subject.together:
        name = rule.head.predicate.name
        if name not in heads and name not in [c.predicate.name for c in rule.body if isinstance(c, Atom)]:
            heads.add(name)
    return heads.union(p.name for p in (*(fact.predicate for fact in subject.facts), *subject.loaded))


def _lifted(subject: Subject) -> set[tuple[str, str]]:
    """Return pairs of a head's and a body's name: a predicate that its namesake's rules read is an input."""
    return {
        (rule.head.predicate.name, atom.predicate.name)
        for rule in subject.together
        for atom in body_atoms(rule.body)
    }


def one_kind(subject: Subject) -> Iterator[Diagnostic]:
    """Warn about a class that nothing states or derives where a property of its name is, and the reverse.

    A property is taken to be stated later if the rules of the class read it, and the reverse.
    """
    known = _known(subject)
    unknown: dict[Predicate, Atom] = {}
    for rule in subject.rules:
        for atom in body_atoms(rule.body):
            if _other_kind(atom.predicate) in known and atom.predicate not in known:
                unknown.setdefault(atom.predicate, atom)
    if not unknown:
        return
    read = {
        atom.predicate
        for rule in subject.together
        for atom in body_atoms(rule.body)
        if rule.head.predicate == _other_kind(atom.predicate)
    }
    any_class = RDF_TYPE in {p.name for p in known} or RDF_TYPE in subject.names()
    for predicate, atom in unknown.items():
        if predicate in read or (predicate.arity == 1 and any_class):
            continue
        shown = format_predicate(predicate.name)
        alone = f"for its first argument alone write {shown}(X, _)" if predicate.arity == 1 else ""
        yield Diagnostic(
            "W022",
            f"{shown} has {counted(predicate.arity, 'argument')} here and {3 - predicate.arity} wherever a "
            "fact or a rule defines it",
            alone or f"a class has one argument: {shown}(X)",
            atom.span,
            "warning",
        )


def timed_windows(subject: Subject) -> Iterator[Diagnostic]:
    """Check that an `@time` names the time of each atom with a `within`."""
    if not any(has_windows(rule) for rule in subject.rules):
        return
    times = subject.times() if subject.times else declared_times(subject.facts)
    for rule in subject.rules:
        yield from untimed_windows(rule, times)


def kept_times(subject: Subject) -> Iterator[Diagnostic]:
    """Check that an `@time` names the time of each predicate whose facts are kept by it."""
    kept = [atom for atom in subject.facts if atom.relation == KEEP_RELATION]
    times = (subject.times() if subject.times else declared_times(subject.facts)) if kept else {}
    for atom in kept:
        name = atom.args[0].value if isinstance(atom.args[0], IRI) else ""
        if name not in times:
            shown = format_predicate(name)
            note = f"declare it, @time {shown} 3 . or count from when a fact was stated: 7 d since stated"
            yield Diagnostic("C025", f"no @time says which argument of {shown} is its time", note, atom.span)


def declared_times(facts: Iterable[Atom | Fact]) -> dict[str, int]:
    """Return the argument that is the time of each predicate, from 1, as facts of `@time` say."""
    times: dict[str, int] = {}
    for fact in facts:
        match fact.args:
            case (IRI(value=name), Literal() as position) if fact.relation == TIME_RELATION:
                value = value_of(position)
                times[name] = value if isinstance(value, int) else 0
            case _:
                continue
    return times


def _other_kind(predicate: Predicate) -> Predicate | None:
    """Return the property of a class's name, or the class of a property's."""
    name, arity = predicate
    return Predicate(name, 3 - arity) if arity in {1, 2} and name != RDF_TYPE else None


def _known(subject: Subject) -> set[Predicate]:
    """Return the predicates that a rule defines or a fact uses."""
    defined = {rule.head.predicate for rule in subject.together}
    return defined.union((fact.predicate for fact in subject.facts), subject.loaded)


def _atoms(subject: Subject) -> Iterator[Atom]:
    for rule in subject.together:
        yield rule.head
        yield from body_atoms(rule.body)
    yield from subject.facts


RULE_CHECKS: tuple[Callable[[Rule, Host], Iterator[Diagnostic]], ...] = (
    safe_variables,
    sound_aggregate,
    known_functions,
    window_conditions,
)
TEXT_CHECKS: tuple[Callable[[Rule, Host], Iterator[Diagnostic]], ...] = (regular_expressions,)
PROGRAM_CHECKS: tuple[Callable[[Subject], Iterator[Diagnostic]], ...] = (
    unique_labels,
    repeated_rules,
    one_arity,
    sole_aggregate_rule,
    familiar_names,
    one_kind,
    timed_windows,
    kept_times,
)
