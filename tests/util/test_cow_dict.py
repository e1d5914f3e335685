"""Maps in two layers: they behave as dictionaries do, and a copy never changes what it was made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zodiacedge.util.cow_dict import CowDict

_KEYS = st.integers(0, 12)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _KEYS, st.integers()),
        st.tuples(st.just("drop"), _KEYS, st.just(0)),
        st.tuples(st.just("copy"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(st.dictionaries(_KEYS, st.integers()), _STEPS)
def test_layers_behave_as_a_dictionary_does(start: dict[int, int], steps: list[tuple[str, int, int]]) -> None:
    found, model = CowDict(start), dict(start)
    kept = [(found, dict(model))]
    for step, key, value in steps:
        if step == "put":
            found[key] = model[key] = value
            kept[-1] = found, dict(model)
        elif step == "drop":
            assert found.pop(key, None) == model.pop(key, None)
            kept[-1] = found, dict(model)
        else:
            found = found.copy()
            kept.append((found, dict(model)))
    for one, expected in kept:
        assert list(one) == list(expected)
        assert list(one.items()) == list(expected.items())
        assert len(one) == len(expected)
        for key in range(-1, 14):
            assert (key in one) == (key in expected)
            assert one.get(key) == expected.get(key)


def test_a_copy_with_much_of_its_own_gets_a_large_table() -> None:
    first = CowDict((n, n) for n in range(100))
    second = first.copy()
    for n in range(300):
        second[n] = -n
    third = second.copy()
    del third[7]
    assert dict(first) == {n: n for n in range(100)}
    assert dict(second) == {n: -n for n in range(300)}
    assert dict(third) == {n: -n for n in range(300) if n != 7}
