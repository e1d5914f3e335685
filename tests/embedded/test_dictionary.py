"""Terms get the same ids one by one, many at once, and without a compiler."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.terms import dictionary as implementation
from zodiacedge.engine.embedded.terms.dictionary import Dictionary
from zodiacedge.engine.embedded.terms.fingerprints import fingerprints
from zodiacedge.terms import (
    INTEGER_MAX,
    INTEGER_MIN,
    IRI,
    XSD,
    XSD_BOOLEAN,
    XSD_FLOAT,
    XSD_INTEGER,
    BlankNode,
    Literal,
    Term,
    calendar_date,
    date_time,
    decimal,
    double,
    integer,
    literal,
    string,
)

TESTS = Path(__file__).parents[1]
CORNERS: list[Term] = [
    IRI(""),
    IRI("a"),
    BlankNode("a"),
    string(""),
    string("a"),
    string("é\0𐀀"),
    string("a", "en"),
    string("a", "de"),
    Literal("a", XSD + "date"),
    Literal("", XSD + "date"),
    integer(INTEGER_MIN),
    integer(INTEGER_MAX),
    integer(-1),
    integer(0),
    integer(1),
    Literal(str(2**63), XSD_INTEGER),
    double(0.0),
    double(1.0),
    double(-2.5e-300),
    decimal(1.0),
    literal("1", XSD_FLOAT),
    literal("true", XSD_BOOLEAN),
    literal("false", XSD_BOOLEAN),
    date_time(datetime(1, 1, 1, tzinfo=UTC)),
    date_time(datetime(2024, 2, 29, 12, tzinfo=UTC)),
    calendar_date(date(1, 1, 1)),
    calendar_date(date(1970, 1, 1)),
    calendar_date(date(9999, 12, 31)),
    Literal("2024-02-29+02:00", XSD + "date"),
]


def many_terms(total: int, seed: int = 1) -> list[Term]:
    """Return terms of all kinds, some of them more than once."""
    dice = random.Random(seed)
    makers = (
        lambda n: IRI(f"http://example.org/{n}"),
        lambda n: IRI("x" * n),
        lambda n: BlankNode(f"b{n}"),
        lambda n: string(f"text {n}"),
        lambda n: string(f"text {n % 50}", "en"),
        integer,
        lambda n: double(n / 7),
        lambda n: decimal(n / 100),
        lambda _: dice.choice(CORNERS),
    )
    return [dice.choice(makers)(dice.randrange(500)) for _ in range(total)]


def check_many(total: int) -> None:
    """Check that terms encoded together are terms encoded one by one."""
    terms = many_terms(total)
    single, together = Dictionary(), Dictionary()
    expected = [single.encode(term) for term in terms]
    assert together.encode_all(iter(terms)).tolist() == expected
    assert [together.decode(number) for number in expected] == terms
    assert [together.find(term) for term in terms] == expected
    assert len(together) == len(single) == len(set(terms))
    assert together.encode_all(terms).tolist() == expected


@pytest.mark.parametrize("total", [0, 1, 16, 17, 99, 100, 101, 2000])
def test_terms_together_get_the_ids_of_terms_one_by_one(total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "_BATCH", 100)
    check_many(total)


def test_every_kind_of_term_is_kept() -> None:
    dictionary = Dictionary()
    assert dictionary.encode_all(CORNERS).tolist() == list(range(len(CORNERS)))
    assert [dictionary.decode(number) for number in range(len(CORNERS))] == CORNERS


def test_one_by_one_and_together_share_the_arena() -> None:
    dictionary = Dictionary()
    terms = many_terms(3000, seed=2)
    ids = []
    for start in range(0, len(terms), 100):
        ids += dictionary.encode_all(terms[start : start + 99]).tolist()
        ids.append(dictionary.encode(terms[start + 99]))
    assert [dictionary.decode(number) for number in ids] == terms


def test_numbers_are_encoded_from_their_bits() -> None:
    dictionary = Dictionary()
    values = np.arange(-3000, 3000)
    whole = dictionary.encode_integers(values[::2])
    assert [dictionary.decode(number) for number in whole.tolist()] == [
        integer(n) for n in range(-3000, 3000, 2)
    ]
    kinds = np.array([L.K_INTEGER, L.K_DOUBLE], np.int8)
    bits = np.array([7, int(np.float64(0.5).view(np.int64))])
    found = dictionary.encode_numbers(kinds, bits)
    assert [dictionary.decode(number) for number in found.tolist()] == [integer(7), double(0.5)]
    assert found.tolist() == [dictionary.encode(term) for term in (integer(7), double(0.5))]
    assert dictionary.encode_numbers(L.K_DOUBLE, bits[1:]).tolist() == found[1:].tolist()
    assert dictionary.encode_integers(values[:0]).tolist() == []


def test_a_text_larger_than_the_arena_is_encoded() -> None:
    dictionary = Dictionary()
    long = [string("long" * n) for n in (5000, 50_000)]
    assert dictionary.encode(long[0]) == 0
    assert dictionary.encode_all([long[1]] * 50).tolist() == [1] * 50
    assert [dictionary.decode(number) for number in (0, 1)] == long


def test_the_same_code_runs_without_a_compiler() -> None:
    script = (
        "from embedded.test_dictionary import check_many\n"
        "from zodiacedge.engine.embedded.kernels.jit import COMPILED\n"
        "assert not COMPILED\n"
        "check_many(600)\n"
    )
    environment = os.environ | {"ZODIAC_PURE_PYTHON": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def similar_terms(seed: int) -> list[Term]:
    """Return texts that share much, little or nothing at either end, short and long."""
    dice = random.Random(seed)
    long = "".join(dice.choices("abcdef", k=6000))
    shapes = (
        lambda n: IRI(f"http://example.org/Department{n % 7}/Course{n}"),
        lambda n: string(f"student{n}@department{n % 5}.example.edu"),
        lambda n: string(f"{n} of the same ending, which is long"),
        lambda n: string(long[n:] + str(n % 3) + long[: dice.randrange(60)]),
        lambda n: string("é" * (n % 40) + str(n)),
        lambda n: string("a" * n),
        lambda n: Literal(f"{n % 9} feet and {n} inches", XSD + "length"),
        lambda n: string(f"sixteen letters! {n % 11}", "en"),
    )
    return [dice.choice(shapes)(dice.randrange(300)) for _ in range(1500)]


@pytest.mark.parametrize("seed", [1, 2])
def test_similar_texts_share_bytes(seed: int) -> None:
    terms = similar_terms(seed)
    dictionary = Dictionary()
    ids = dictionary.encode_all(terms)
    assert [dictionary.decode(number) for number in ids.tolist()] == terms
    assert [dictionary.find(term) for term in terms] == ids.tolist()
    assert dictionary.encode_all(reversed(terms)).tolist() == ids.tolist()[::-1]
    ends, text = dictionary.texts(ids)
    whole = {term.lexical if isinstance(term, Literal) else str(term)[1:-1] for term in terms[:40]}
    pieces = [bytes(text[start:end]).decode() for start, end in pairwise(ends[:41])]
    assert {piece.rsplit("\0", 1)[-1] for piece in pieces} == whole


def test_a_fingerprint_does_not_depend_on_what_a_text_shares() -> None:
    terms = list(dict.fromkeys(similar_terms(3)))
    forwards, backwards = Dictionary(), Dictionary()
    forwards.encode_all(terms)
    backwards.encode_all(reversed(terms))
    assert fingerprints(forwards).tolist() == fingerprints(backwards).tolist()[::-1]


def test_names_of_one_form_take_few_bytes() -> None:
    dictionary = Dictionary()
    dictionary.encode_all(
        IRI(f"http://www.Department{n // 500 % 20}.University{n // 10_000}.edu/UndergraduateStudent{n % 500}")
        for n in range(50_000)
    )
    assert dictionary.nbytes < 45 * len(dictionary)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_roots_stay_as_long_as_a_text_shares_their_bytes(seed: int) -> None:
    dice = random.Random(seed)
    dictionary = Dictionary()
    for turn in range(6):
        terms = similar_terms(10 * seed + turn)
        ids = dict(zip(terms, dictionary.encode_all(terms).tolist(), strict=True))
        kept = [term for term in ids if dice.random() < 0.3]
        dictionary.begin_marking()
        dictionary.mark(np.array([ids[term] for term in kept], np.int32))
        total = dictionary.begin_sweep()
        for start in range(0, total, 100):
            dictionary.sweep(start, start + 100)
        dictionary.end_marking()
        dictionary.trim()
        assert [dictionary.find(term) for term in kept] == [ids[term] for term in kept]
        assert [dictionary.decode(ids[term]) for term in kept] == kept
        gone = [term for term in ids if term not in kept and dictionary.find(term) < 0]
        assert len(gone) > len(ids) // 4
