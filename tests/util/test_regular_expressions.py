r"""Regular expressions of XPath: what matches, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zodiacedge.util import linear_matching
from zodiacedge.util.regular_expressions import compiled


def matches(text: str, pattern: str, flags: str = "") -> bool:
    return compiled(pattern, flags).matches(text)


MATCHING = [
    ("turbine", "", ""),
    ("turbine", "bin", ""),
    ("turbine", "^t.*e$", ""),
    ("turbine", "^(t|u)+?r", ""),
    ("aa", "^a{2}$", ""),
    ("aaa", "^a{2,}$", ""),
    ("aaa", "^(?:a){1,3}?$", ""),
    ("abab", "^(ab)\\1$", ""),
    ("aa0", "^(a)\\10$", ""),
    ("b", "^(?:(a)|b)\\1$", ""),
    ("a\nb", "^b$", "m"),
    ("a\nb", "a$", "m"),
    ("a\nb", "a.b", "s"),
    ("TURBINE", "bin", "i"),
    ("TURBINE", "[a-e]", "i"),
    ("turbine", "t u r\n bine", "x"),
    ("a b", "a[ ]b", "x"),
    ("a]b", "a\\] b", "x"),
    ("a.b*", "A.B*", "qi"),
    ("x", "^[a-z-[aeiou]]$", ""),
    ("-", "^[a-]$", ""),
    ("-", "^[-a]$", ""),
    ("^", "^[a^]$", ""),
    ("]", "^[\\]]$", ""),
    ("\t", "^\\t\\s?$", ""),
    ("٣", "^\\d$", ""),
    ("$", "^\\w$", ""),
    ("é", "^\\w\\W?$", ""),
    ("a:b", "^\\i\\c+$", ""),
    ("É", "^\\p{Lu}$", ""),
    ("É", "^\\p{L}$", ""),
    ("é", "^\\P{Lu}$", ""),
    ("5", "^[\\S-[a-z]]$", ""),
    ("a", "^*a", ""),
]


@pytest.mark.parametrize(("text", "pattern", "flags"), MATCHING)
def test_a_text_matches(text: str, pattern: str, flags: str) -> None:
    assert matches(text, pattern, flags)


OTHERS = [
    ("turbine", "Bin", ""),
    ("turbine\n", "e$", ""),
    ("a\nb", "^b", ""),
    ("a\n", "\n^", "m"),
    ("a\nb", "a.b", ""),
    ("a.b", "A+B", "qi"),
    ("axb", "a.b", "q"),
    ("e", "^[a-z-[aeiou]]$", ""),
    ("E", "[^e]", "i"),
    ("_", "^\\w$", ""),
    ("\x0b", "\\s", ""),
    ("1a", "^\\i", ""),
    ("a b", "a b", "x"),
    ("aab", "^(a)\\1\\1", ""),
]


@pytest.mark.parametrize(("text", "pattern", "flags"), OTHERS)
def test_a_text_does_not_match(text: str, pattern: str, flags: str) -> None:
    assert not matches(text, pattern, flags)


REFUSED = [
    "(", ")", "(?=a)", "(?P<n>a)", "(?i)a", "[", "[]", "[a", "[b-a]", "[a-c-e]", "[a-z-[b]c]", "[[a]]",
    "[\\d-z]", "a]", "a{", "a}", "a{,2}", "a{2,1}", "a{99999999999}", "*", "a**", "a*+", "a{2}{3}", "|*",
    "(*a)", "\\", "\\b", "\\A", "\\x41", "\\_", "\\1", "(a\\1)", "(a)\\2", "\\0", "\\p{IsGreek}", "\\p{Xx}",
    "\\pL", "(" * 5000 + ")" * 5000, "[a-" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED, ids=range(len(REFUSED)))
def test_what_xpath_does_not_have_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        compiled(pattern, "")


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="regular expression"):
        compiled("a", "ig")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 5000 + "b"),
        ("^(a|a)*$", "a" * 5000 + "b"),
        ("(?:a?){60}a{60}b", "a" * 60),
        ("^(\\w+\\s?)*$", "a" * 5000 + "!"),
        (".*.*.*=.*", "x" * 3000),
    ],
)
def test_a_pattern_with_many_ways_to_match_ends(pattern: str, text: str) -> None:
    assert not matches(text, pattern)
    assert matches("b" + text + "b=", f"b{pattern}|=$")


PIECES = ("a", "b", ".", "[ab]", "[^a]", "\\n", "^", "$", "[a-c-[b]]", "\\w", "A")
QUANTIFIERS = ("*", "+", "?", "{1,2}", "{2}", "{2,}", "*?", "+?", "{0}")
PATTERNS = st.recursive(
    st.sampled_from(PIECES),
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(QUANTIFIERS)),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.sampled_from(["", "i", "m", "s", "ms"]), st.text("abA\n", max_size=6))
def test_sets_of_states_match_what_re_matches(pattern: str, flags: str, text: str) -> None:
    expression = compiled(pattern, flags)
    states = linear_matching._States.of(expression._compiled)
    assert states.match(text) == (expression._compiled.search(text) is not None)


def test_back_references_and_huge_repetitions_are_left_to_re() -> None:
    assert matches("aab" * 3, "^(?:(a+)b|\\1)+$")
    assert matches("a" * 20, "^(?:a{1,5000}){1,5000}$")
