"""Checks of arguments before any work is done: paths, versions, times, messages, texts, relations."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, UsageProblem
from zodiacedge.language.names import full_name
from zodiacedge.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_FUNCTION_NAME = re.compile(r"[^\W\d][\w-]*")
LONGEST = timedelta(days=36_500)


def given_path(value: object) -> str | os.PathLike[str]:
    """Return the path or address of a store, or raise."""
    if isinstance(value, os.PathLike) and not isinstance(os.fspath(value), str):
        value = os.fspath(value)
    if isinstance(value, str | os.PathLike):
        return value
    raise _wrong_type("the path of a store", value, "write it as a string or a Path: ze.open('farm.zodiac')")


def given_version(value: object) -> int:
    """Return the number of a version, or raise."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _wrong_type("the number of a version", value, "write it as an int; kb.log() lists them")


def given_versions(value: object) -> int:
    """Return how many versions to look back, or raise."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    note = "write it as an int of 1 or more: kb.why_changed(…, versions=10)"
    raise _wrong_type("a number of versions", value, note)


def given_limit(value: object) -> int | None:
    """Return the most rows of a query, or None for all, or raise."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise _wrong_type("a number of rows", value, "write it as an int of 1 or more: kb.query(…, limit=10)")


def given_time(value: object) -> timedelta:
    """Return the retention time of versions, or raise."""
    if not isinstance(value, timedelta):
        raise _wrong_type("a time", value, "write it as a timedelta: kb.vacuum(timedelta(days=7))")
    if timedelta() <= value <= LONGEST:
        return value
    raise UsageProblem(
        Diagnostic(
            "U021",
            f"versions cannot be kept for {value}",
            f"name a time from zero to {LONGEST.days:,} days: kb.vacuum(timedelta(days=7))",
        )
    )


def given_bytes(value: object) -> int | None:
    """Return the most bytes of a store, or None for no bound, or raise."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    note = "write it as an int of 1 or more: kb.retain(timedelta(days=7), most_bytes=64_000_000)"
    raise _wrong_type("a number of bytes", value, note)


def given_wait(value: object) -> float:
    """Return the seconds to wait for a store, or raise; infinity waits as long as it takes."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise _wrong_type("a number of seconds", value, "zero or more: ze.open('farm.zodiac', wait=60)")


def given_message(value: object) -> str:
    """Return the message of a change for the log, or raise if it is not UTF-8 text."""
    if not isinstance(value, str):
        raise _wrong_type("a message", value, "write it as a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem(
            Diagnostic(
                "U020",
                f"the message {printable(value)!r} is not UTF-8",
                "write it in UTF-8; a terminal may have another encoding",
            )
        ) from error
    return value


def given_text(value: object) -> str:
    """Return a string argument, or raise."""
    if isinstance(value, str):
        return value
    raise UsageProblem(Diagnostic("U013", f"expected a text, found {value!r}", "write it as a string"))


def given_relation(value: object, prefixes: Mapping[str, str]) -> str:
    """Return the full name of a relation, empty if none is given, or raise."""
    if isinstance(value, IRI):
        return full_name(f"<{value.value}>", prefixes)
    if isinstance(value, str):
        return full_name(value, prefixes) if value else ""
    raise _wrong_type("the name of a relation", value, "write it as a string: relation='reading'")


def given_function_name(call: object, name: object, reserved: Collection[str] = ()) -> str:
    """Return the name that a function is registered by, or raise if rules cannot call it so."""
    if not callable(call):
        raise _wrong_type("a function", call, "register a function: kb.function(predict)")
    named = name or getattr(call, "__name__", "")
    if not isinstance(named, str) or not _FUNCTION_NAME.fullmatch(named):
        raise _wrong_type(
            "the name of a function", named, "name it in letters, digits, - and _: name='predict'"
        )
    if named.upper() in reserved:
        note = "rules would get the aggregate of the language: choose another name"
        raise UsageProblem(Diagnostic("U013", f"{named} is an aggregate of the language", note))
    return named


def in_memory() -> UsageProblem:
    """Return the error of a store operation on a knowledge base in memory."""
    return UsageProblem(
        Diagnostic("U018", "this knowledge base is in memory and has no versions", "open a store")
    )


def printable(text: str) -> str:
    """Return a text for any terminal: undecodable bytes are written as escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _wrong_type(expected: str, value: object, note: str) -> UsageProblem:
    return UsageProblem(Diagnostic("U013", f"expected {expected}, found {value!r}", note))
