"""How bytes and texts are harmed: flipped, cut, repeated, mixed, with what the formats give a meaning to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

# fmt: off
WORDS = (
    "(", ")", ",", ".", ":-", "?-", ":", ":=", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%",
    "**", "div", "not", "AGGREGATE", "ON", "WITH", "AS", "COUNT", "SUM", "MIN", "MAX", "DISTINCT",
    "@prefix", "PREFIX", "func:", "rdf:type", "_", "?x", "X", "Y", "<http://e/a>", "<>", '"a"', "'b'",
    '"x"@en', '"5"^^xsd:integer', "_:b1", "true", "false", "5", "-0.5", "1e999", "9223372036854775808",
    "\\u0000", "\\uD800", "\\", '"', "'", "#", "%", "add", "remove", "commit", "count", "refuse", "\x00",
    "é", "😀", "label:", "p(X)", "p(a,b)", "q()", "r(X,Y,Z)", "0x", "1e", "1.", ".5", "...", ":::", "<<>>",
    "[]", "{}", "``", "|", "&", "~", "^", "$", ";", "BIND", "comp", "bind", "aggregate", "\n", "\t",
)
# fmt: on
EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x0D, 0x22, 0x2C, 0x5C)
NUMBERS = (0, 1, 2**7, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)


def harmed(dice: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return bytes with a few things wrong with them."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        data = _once(dice, data, others)
    return data


def _once(dice: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start = dice.randint(0, len(data))
    end = min(len(data), start + dice.choice((1, 2, 4, 8, 40, 400)))
    match dice.randrange(9):
        case 0 if data:
            at = dice.randrange(len(data))
            return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
        case 1 if data:
            at = dice.randrange(len(data))
            return data[:at] + bytes([dice.choice(EDGES)]) + data[at + 1 :]
        case 2:
            return data[:start] + data[end:]
        case 3:
            return data[:start] + data[start:end] * dice.choice((2, 3, 50)) + data[end:]
        case 4:
            return data[:start]
        case 5:
            return data[:start] + dice.randbytes(end - start) + data[end:]
        case 6:
            size = dice.choice((1, 2, 4, 8))
            number = dice.choice(NUMBERS) % (1 << 8 * size)
            return data[:start] + number.to_bytes(size, "little") + data[start + size :]
        case 7 if others:
            other = dice.choice(others)
            at = dice.randint(0, len(other))
            return data[:start] + other[at : at + end - start] + data[end:]
        case _:
            return data[:start] + dice.choice(WORDS).encode("utf-8", "replace") + data[start:]


def harmed_text(dice: Random, text: str, others: Sequence[str] = ()) -> str:
    """Return a text with a few words wrong."""
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        start = dice.randint(0, len(text))
        end = min(len(text), start + dice.choice((1, 3, 10, 60)))
        other = dice.choice(others) if others else text
        at = dice.randint(0, len(other))
        new = dice.choice(
            (
                "",
                dice.choice(WORDS),
                f" {dice.choice(WORDS)} {dice.choice(WORDS)} ",
                chr(dice.choice((0, 9, 10, 13, 0x22, 0x27, 0x5C, 0xA0, 0x2028, 0xFEFF, 0x1F600))),
                other[at : at + dice.choice((5, 20, 80))],
                text[start:end] * dice.choice((2, 30)),
            )
        )
        text = text[:start] + new + text[dice.choice((start, end)) :]
    return text
