"""Diagnostics of packs that are built in more than one place."""

from __future__ import annotations

from zodiacedge.errors import Diagnostic, PackProblem


def bad_source(where: str, why: str, note: str) -> PackProblem:
    """Return the problem of a folder that makes no pack."""
    return PackProblem(Diagnostic("P001", f"{where}: {why}", note))


def bad_file(name: str, why: str) -> PackProblem:
    """Return the problem of a file that is no pack, or not the one that was built."""
    return PackProblem(
        Diagnostic("P002", f"{name} is no pack: {why}", "build it again: zodiac pack build DIR")
    )


def does_not_fit(name: str, why: str) -> PackProblem:
    """Return the problem of a delta for a version or a set of rules that is not in force."""
    return PackProblem(
        Diagnostic("P009", f"the delta of the pack {name} does not fit: {why}", "install the whole pack")
    )


def not_installed(name: str, near: str | None) -> PackProblem:
    """Return the problem of a pack to remove that is not in force."""
    hint = f"did you mean {near}?" if near else "zodiac pack list shows those that are"
    return PackProblem(Diagnostic("P013", f"no pack {name} is installed", hint))
