"""Reserved words, operators, built-in functions, aggregates and default prefixes."""

from __future__ import annotations

from zodiacedge.terms import RDF, XSD

RESERVED = frozenset({"and", "not", "comp", "bind", "as", "aggregate", "on", "with", "true", "false"})
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
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
FUNCTION_PREFIX = "func"
DEFAULT_PREFIXES: dict[str, str] = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
}
