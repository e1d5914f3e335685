"""Diagnostics of fleets that are built in more than one place."""

from __future__ import annotations

from zodiacedge.errors import Diagnostic, FleetProblem


def refused(what: str, why: object) -> FleetProblem:
    """Return the problem of metadata or contents that are not what trusted keys signed."""
    return FleetProblem(
        Diagnostic(
            "F001",
            f"{what} is refused: {why}",
            "what is in force stays; look who is between here and the hub",
        )
    )


def expired(what: str, why: object) -> FleetProblem:
    """Return the problem of metadata that has expired."""
    note = "what is in force stays and nothing new is taken; look at the clock here, and whether the hub runs"
    return FleetProblem(Diagnostic("F002", f"{what} has expired: {why}", note))


def unreachable(url: str, why: object) -> FleetProblem:
    """Return the problem of a server that does not answer."""
    return FleetProblem(
        Diagnostic(
            "F003", f"{url} does not answer: {why}", "what is in force stays; does it run, at this address?"
        )
    )


def disagreed(what: str, why: str) -> FleetProblem:
    """Return the problem of a pack that is not both published and assigned to this device."""
    return FleetProblem(
        Diagnostic(
            "F004", f"{what}: {why}", "a device runs what is published and assigned to it, and nothing else"
        )
    )


def bad_keys(where: object, why: str, note: str) -> FleetProblem:
    """Return the problem of a folder of keys or a repository."""
    return FleetProblem(Diagnostic("F005", f"{where}: {why}", note))
