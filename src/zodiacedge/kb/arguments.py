"""Arguments of callers, checked before anything is done: paths, versions, times, messages, texts."""

from __future__ import annotations

import os
from datetime import timedelta

from zodiacedge.errors import Diagnostic, UsageProblem

LONGEST = timedelta(days=36_500)


def given_path(value: object) -> str | os.PathLike[str]:
    """Return what names a store, if it is a path or an address."""
    if isinstance(value, os.PathLike) and not isinstance(os.fspath(value), str):
        value = os.fspath(value)
    if isinstance(value, str | os.PathLike):
        return value
    raise _other_type("the path of a store", value, "write it as a string or a Path: ze.open('farm.zodiac')")


def given_version(value: object) -> int:
    """Return what names a version, if it is a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _other_type("the number of a version", value, "write it as an int; kb.log() lists them")


def given_time(value: object) -> timedelta:
    """Return for how long versions are kept, if that is a time that can be counted back from now."""
    if not isinstance(value, timedelta):
        raise _other_type("a time", value, "write it as a timedelta: kb.vacuum(timedelta(days=7))")
    if timedelta() <= value <= LONGEST:
        return value
    raise UsageProblem(
        Diagnostic(
            "U021",
            f"versions cannot be kept for {value}",
            f"name a time from zero to {LONGEST.days:,} days: kb.vacuum(timedelta(days=7))",
        )
    )


def given_message(value: object) -> str:
    """Return what the log is to say about a change, if it is a text that can be written."""
    if not isinstance(value, str):
        raise _other_type("a message", value, "write it as a string")
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
    """Return a text that was given as one, or raise."""
    if isinstance(value, str):
        return value
    raise UsageProblem(Diagnostic("U013", f"expected a text, found {value!r}", "write it as a string"))


def in_memory() -> UsageProblem:
    """Return the problem of asking a knowledge base without a store for what only a store has."""
    return UsageProblem(
        Diagnostic("U018", "this knowledge base is in memory and has no versions", "open a store")
    )


def printable(text: str) -> str:
    """Return a text that any terminal takes: bytes that are no text of it are written as such."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _other_type(wanted: str, value: object, note: str) -> UsageProblem:
    return UsageProblem(Diagnostic("U013", f"expected {wanted}, found {value!r}", note))
