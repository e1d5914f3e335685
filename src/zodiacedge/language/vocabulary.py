"""The language in words: its version, reserved words, operators, functions, aggregates, default prefixes."""

from __future__ import annotations

from zodiacedge.terms import RDF, XSD

# Rises when programs may say what earlier versions would not read, or would read in another way.
LANGUAGE_VERSION = 1
RESERVED = frozenset({"and", "not", "comp", "bind", "as", "aggregate", "on", "with", "true", "false"})
# The one reserved word that only lower case writes: `Now` is a variable.
NOW = "now"
# Words behind a number that make a length of time of it, in microseconds, the longest first.
UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Aggregates of two arguments: the first one where the second is greatest or least.
CHOOSING = ("ARGMAX", "ARGMIN")
# `LATEST(?v)` is ARGMAX over the time of the timed atom that has the variable.
LATEST = "LATEST"
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "MED")

# Built-in functions, with their least and greatest number of arguments.
FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "round": (1, 1),
    "floor": (1, 1),
    "ceil": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ln": (1, 1),
    "log10": (1, 1),
    "min": (1, None),
    "max": (1, None),
    "concat": (0, None),
    "strlen": (1, 1),
    "substr": (2, 3),
    "lower": (1, 1),
    "upper": (1, 1),
    "contains": (2, 2),
    "startswith": (2, 2),
    "endswith": (2, 2),
    "replace": (3, 3),
    "strbefore": (2, 2),
    "strafter": (2, 2),
    "regex": (2, 3),
    "str": (1, 1),
    "iri": (1, 1),
    "lang": (1, 1),
    "datatype": (1, 1),
    "isiri": (1, 1),
    "isliteral": (1, 1),
    "if": (3, 3),
    "coalesce": (1, None),
    "num": (1, 1),
    "year": (1, 1),
    "month": (1, 1),
    "day": (1, 1),
    "hours": (1, 1),
    "minutes": (1, 1),
    "seconds": (1, 1),
}

# Functions whose value is a boolean: conditions of other languages.
CONDITIONS = frozenset({"contains", "startswith", "endswith", "regex", "isiri", "isliteral"})
# Relations of facts about time. Declarations and the clock are facts: they are stored, undone and compared as
# all others are. The last two are hidden: engines fill them.
TIME_BASE = "urn:zodiac:"
CLOCK = TIME_BASE + "clock"
NOW_RELATION = TIME_BASE + "now"  # (clock, moment)
TIME_RELATION = TIME_BASE + "time"  # (predicate, position)
KEEP_RELATION = TIME_BASE + "keep"  # (predicate, length)
KEEP_ABOUT_RELATION = TIME_BASE + "keepAbout"  # (class, property, length)
KEEP_STATED_RELATION = TIME_BASE + "keepStated"  # (predicate, length)
TIME_FACTS = {
    NOW_RELATION: 2,
    TIME_RELATION: 2,
    KEEP_RELATION: 2,
    KEEP_ABOUT_RELATION: 3,
    KEEP_STATED_RELATION: 2,
}
STATED_BASE = TIME_BASE + "stated:"  # with the name of a predicate: its arguments, and when they were stated
WINDOW_RELATION = TIME_BASE + "window"  # (moment, window)
RECENT_BASE = TIME_BASE + "recent:"  # with a digest of the atom that a rule negates within a length of time

FUNCTION_PREFIX = "func"
DEFAULT_PREFIXES: dict[str, str] = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "zodiac": "urn:zodiac:",
}
