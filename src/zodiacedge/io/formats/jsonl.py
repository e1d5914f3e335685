"""JSON lines: one fact per line, of any predicate and any arity.

A line is `{"predicate": "p", "args": [cell, …]}`, or `[cell, …]` for the relation of the file
(`p=file.jsonl`, else the file's name), or `true` for that relation without columns. A JSON string is a
cell as in `cells`, a JSON number or boolean is a literal as in the language (`5` integer, `5.0` decimal,
`5e0` double). Anything else is a bad line. A predicate has the arity of its first line; one name may be
both a class and a property.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING

from zodiacedge.errors import LoadProblem
from zodiacedge.io.formats.cells import read_cell, read_number, write_cell
from zodiacedge.io.formats.lines import numbered
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.names import checked_name
from zodiacedge.terms import (
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Literal,
    Term,
    boolean,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zodiacedge.io.formats.lines import FileReading

_SURROGATE = re.compile("[\ud800-\udfff]")
_BARE_TYPES = frozenset({XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE, XSD_BOOLEAN})


class _NotAFactError(Exception):
    """A line is not a fact; the message is the reason."""


def read_jsonl(stream: IO[bytes], reading: FileReading) -> Iterator[list[Fact]]:
    """Yield the facts of a file in batches; report bad lines."""
    arities: dict[str, int] = {}
    decoder = json.JSONDecoder(
        parse_float=read_number, parse_int=read_number, parse_constant=_reject_constant
    )
    batch: list[Fact] = []
    for line in numbered(stream):
        if not line.data.strip():
            continue
        try:
            value: object = decoder.decode(line.data.decode())
            batch.append(_fact(value, reading, arities))
        except UnicodeDecodeError as error:
            reading.report(
                line.number, line.offset, f"not UTF-8: byte 0x{error.object[error.start]:02x}", line.data
            )
        except json.JSONDecodeError as error:
            reading.report(
                line.number, line.offset, f"column {error.colno}: not JSON: {error.msg}", line.data
            )
        except RecursionError:
            reading.report(line.number, line.offset, "not a fact: nested too deeply", line.data)
        except _NotAFactError as error:
            reading.report(line.number, line.offset, str(error), line.data)
        if len(batch) >= reading.options.batch_size:
            yield batch
            batch = []
    if batch:
        yield batch


def json_line(predicate: str, terms: Sequence[Term]) -> str:
    """Return a fact as a line of JSON, without the line break."""
    # An empty name cannot be read back from the file's name.
    if predicate and not terms:
        return "true"
    name = json.dumps(predicate, ensure_ascii=False)
    return f'{{"predicate":{name},"args":[{",".join(map(json_cell, terms))}]}}'


def json_cell(term: Term) -> str:
    """Return a term as JSON text: a number or boolean, else the string of its cell."""
    text = write_cell(term)
    if isinstance(term, Literal) and term.datatype in _BARE_TYPES and _is_json(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _is_json(text: str) -> bool:
    # `05` and `+5`, possible beyond 64 bits, are numbers of cells but not of JSON.
    digits = text.lstrip("-")
    return text[0] != '"' and text[0] != "+" and not (digits[0] == "0" and digits[1:2].isdigit())


def _reject_constant(name: str) -> Literal:
    raise _NotAFactError(f"{name} is not a number with a value")


def _fact(value: object, reading: FileReading, arities: dict[str, int]) -> Fact:
    relation = reading.source.relation
    if isinstance(value, dict):
        unknown = sorted(value.keys() - {"predicate", "args"})
        if unknown:
            raise _NotAFactError(f'unknown key "{unknown[0]}": a fact has "predicate" and "args"')
        name, args = value.get("predicate", relation), value.get("args")
        if reading.source.named and name != relation:
            raise _NotAFactError(f"the line's predicate is {name}, the file was given for {relation}")
    else:
        name, args = relation, [] if value is True else value
    if not isinstance(args, list):
        raise _NotAFactError('not a fact: write {"predicate": "p", "args": [...]} or [...]')
    if not isinstance(name, str) or (not name and not isinstance(value, dict)):
        raise _NotAFactError('no predicate: write {"predicate": "p", "args": [...]}')
    terms = tuple(_term(cell, at) for at, cell in enumerate(args, 1))
    arity = arities[name] if name in arities else arities.setdefault(_name(name), len(terms))
    if len(terms) != arity and {len(terms), arity} != {1, 2}:
        raise _NotAFactError(f"{name} has {len(terms)} arguments here and {arity} before")
    return fact(name, *terms)


def _name(name: str) -> str:
    try:
        return checked_name(name)
    except LoadProblem as error:
        raise _NotAFactError(error.diagnostics[0].message) from error


def _term(cell: object, at: int) -> Term:
    match cell:
        case Literal():
            return cell
        case bool():
            return boolean(cell)
        case str():
            if not cell.isascii() and _SURROGATE.search(cell):
                raise _NotAFactError(f"argument {at} holds half of a surrogate pair")
            return read_cell(cell)
        case None:
            raise _NotAFactError(f"argument {at} is null")
        case _:
            raise _NotAFactError(f"argument {at} is a {'list' if isinstance(cell, list) else 'dictionary'}")
