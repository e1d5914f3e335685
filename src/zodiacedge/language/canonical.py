"""The identity of a rule: its text up to variable names, the order of the body, and the label.

Two rules get the same key exactly when renaming variables and reordering conjuncts makes one the
other. Variables are told apart by colour refinement; where several stay alike, one of them is
singled out and refinement goes on, over every choice, and the least text wins. Variables that can be
swapped without changing the rule need only one choice, and parts of a body that share no open
variable are settled one by one: both keep symmetric bodies cheap.
"""

from __future__ import annotations

from zodiacedge.language.ast import (
    Aggregate,
    Atom,
    Binary,
    Binding,
    Call,
    Comparison,
    Conjunct,
    Expression,
    Negation,
    Rule,
    Unary,
    Variable,
    variables,
)

# A conjunct written flat: words, with a variable where a name is to be filled in.
_Flat = tuple["str | Variable", ...]
# The same with variables as numbers, which hash and compare at once.
_Template = tuple["str | int", ...]
_Colours = dict[int, int]


def rule_key(rule: Rule) -> str:
    """Return the rule's identity as a string."""
    number: dict[Variable, int] = {}
    parts = [
        tuple(number.setdefault(i, len(number)) if isinstance(i, Variable) else i for i in part)
        for part in _conjuncts(rule)
    ]
    return _canonical(parts, dict.fromkeys(number.values(), 0), 0)


def _conjuncts(rule: Rule) -> list[_Flat]:
    outer = [c for c in rule.body if not isinstance(c, Aggregate)]
    parts = [("head", *_flat(rule.head)), *(("body", *_flat(c)) for c in outer)]
    aggregate = rule.aggregate
    if aggregate:
        # Only groups and targets are seen from outside: the other inner names are apart.
        shared = {*aggregate.groups, *(fold.target for fold in aggregate.folds)}
        inner = {v for c in aggregate.body for v in variables(c)}
        inner |= {fold.argument for fold in aggregate.folds}
        apart = {v: Variable(f"inner {v.name}") for v in inner - shared}
        parts += [
            ("inner", *(apart.get(i, i) if isinstance(i, Variable) else i for i in _flat(c)))
            for c in aggregate.body
        ]
        parts += [("on", v) for v in aggregate.groups]
        parts += [
            (
                f"with {fold.op} {fold.distinct} {fold.registered}",
                apart.get(fold.argument, fold.argument),
                fold.target,
            )
            for fold in aggregate.folds
        ]
    return list(dict.fromkeys(parts))


def _flat(node: Conjunct | Expression) -> _Flat:
    match node:
        case Variable():
            return (node,)
        case Atom(relation=relation, args=args):
            return (f"atom {relation!r} {len(args)}", *(i for a in args for i in _flat(a)))
        case Negation(atom=inner):
            return ("not", *_flat(inner))
        case Comparison(left=left, operator=operator, right=right):
            return (f"compare {operator}", *_flat(left), "with", *_flat(right))
        case Binding(variable=variable, expression=expression):
            return ("bind", variable, *_flat(expression))
        case Unary(operand=operand):
            return ("minus", *_flat(operand))
        case Binary(operator=operator, left=left, right=right):
            return (f"{operator} (", *_flat(left), ")", *_flat(right))
        case Call(function=function, args=args, registered=registered):
            inside = (i for a in args for i in (*_flat(a), ";"))
            return (f"call {function} {registered} {len(args)}", *inside)
        case _:
            return (repr(node),)


def _refine(parts: list[_Template], colours: _Colours) -> _Colours:
    # A variable's new colour is its old one and, for each place it stands at, what else stands there.
    while True:
        places: dict[int, list[tuple[str, tuple[int, ...]]]] = {v: [] for v in colours}
        for part in parts:
            shape = tuple(colours[i] if isinstance(i, int) else i for i in part)
            own = {i for i in part if isinstance(i, int)}
            for v in own:
                where = tuple(n for n, i in enumerate(part) if i == v)
                places[v].append((repr(shape), where))
        keys = {v: (colours[v], tuple(sorted(places[v]))) for v in colours}
        order = {key: n for n, key in enumerate(sorted(set(keys.values())))}
        finer = {v: order[key] for v, key in keys.items()}
        distinct = len(set(finer.values()))
        if distinct in {len(set(colours.values())), len(finer)}:
            return finer
        colours = finer


def _canonical(parts: list[_Template], colours: _Colours, known: int) -> str:
    # ints of a colour of their own are settled: they get the next numbers and count as constants.
    # What is left falls into pieces that share no open variable, each with a least text of its own.
    colours = _refine(parts, colours)
    settled = [v for _, cell in sorted(_cells(colours).items()) if len(cell) == 1 for v in cell]
    numbers = {v: f"?{known + n}" for n, v in enumerate(settled)}
    parts = [tuple(numbers.get(i, i) if isinstance(i, int) else i for i in part) for part in parts]
    closed = [" ".join(map(str, part)) for part in parts if not any(isinstance(i, int) for i in part)]
    pieces = [_piece(piece, colours, known + len(settled)) for piece in _pieces(parts)]
    return "\n".join([*sorted(closed), *(f"{{{text}}}" for text in sorted(pieces))])


def _piece(parts: list[_Template], colours: _Colours, known: int) -> str:
    own = {v: colours[v] for part in parts for v in part if isinstance(v, int)}
    cells = _cells(own)
    if any(len(cell) == 1 for cell in cells.values()):
        return _canonical(parts, own, known)
    fresh = max(cells) + 1
    choices = _representatives(parts, cells[min(cells)])
    return min(_canonical(parts, {**own, v: fresh}, known) for v in choices)


def _cells(colours: _Colours) -> dict[int, list[int]]:
    cells: dict[int, list[int]] = {}
    for v, colour in colours.items():
        cells.setdefault(colour, []).append(v)
    return cells


def _pieces(parts: list[_Template]) -> list[list[_Template]]:
    pieces: list[tuple[set[int], list[_Template]]] = []
    for part in parts:
        names = {i for i in part if isinstance(i, int)}
        if not names:
            continue
        joined = [part]
        apart = []
        for piece in pieces:
            if piece[0] & names:
                names |= piece[0]
                joined += piece[1]
            else:
                apart.append(piece)
        pieces = [*apart, (names, joined)]
    return [piece for _, piece in pieces]


def _representatives(parts: list[_Template], cell: list[int]) -> list[int]:
    whole = set(parts)
    chosen: list[int] = []
    for v in cell:
        if not any({_swapped(part, v, w) for part in parts} == whole for w in chosen):
            chosen.append(v)
    return chosen


def _swapped(part: _Template, v: int, w: int) -> _Template:
    return tuple(w if i == v else v if i == w else i for i in part)
