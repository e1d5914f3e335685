"""The errors of a store, each with its code (D001 to D024), and its warnings."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, StoreBusy, StoreProblem, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

# A path, an address or a location: anything that prints as one.
Where = object
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def no_store(root: Where) -> StoreProblem:
    """Return the problem of a missing store."""
    return _problem("D001", f"there is no store {root}", "make one: zodiac init, or ze.open(…, create=True)")


def not_a_store(root: Where, why: str) -> StoreProblem:
    """Return the problem of a folder that is no store."""
    return _problem("D002", f"{root} is not a store: {why}", "name a folder that is empty or not there yet")


def no_folder(path: Where) -> StoreProblem:
    """Return the problem of a store to make in the place of a file."""
    note = f"first name the folder of the store to make: zodiac init farm.zodiac --rules {path}"
    return _problem("D002", f"{path} is a file, and a store is a folder", note)


def is_a_file(path: Where) -> StoreProblem:
    """Return the problem of opening a file as a store."""
    note = f"rules without a store are run so: zodiac run {path} --query '…'; zodiac init makes a store"
    return _problem("D002", f"{path} is a file, and a store is a folder", note)


def no_marker(root: Where, marker: str) -> StoreProblem:
    """Return the problem of opening a folder that is no store."""
    note = "name the folder that zodiac init or ze.open(…, create=True) made"
    return _problem("D002", f"{root} is not a store: it has no {marker}", note)


def bad_name(name: str, why: str) -> StoreProblem:
    """Return the problem of an invalid name of a store."""
    note = "name another folder: in UTF-8, and without \\ and %20"
    return _problem("D002", f"{name} is no name for a store: {why}", note)


def no_address(address: str) -> StoreProblem:
    """Return the problem of an ill-formed address in an object store."""
    return _problem(
        "D002",
        f"{address} is no address of a store",
        "write s3://bucket/name; letters, digits and . _ = + @ ~ - are what names are made of",
    )


def already_a_store(root: Where) -> StoreProblem:
    """Return the problem of creating a store where one exists."""
    note = "change it with zodiac apply, or name another folder"
    return _problem("D014", f"{root} is a store already", note)


def locked(root: Where, holder: str) -> StoreBusy:
    """Return the problem of a second writer."""
    wait = "wait for it: --wait, or ze.open(…, wait=60)"
    note = f"{wait}; or read only: zodiac query, or ze.open(…, read_only=True)"
    return StoreBusy(Diagnostic("D003", f"the store {root} has a writer already: {holder}", note))


def overtaken(root: Where, version: int) -> StoreBusy:
    """Return the problem of a version that another process wrote first, in a location without locks."""
    return StoreBusy(
        Diagnostic(
            "D018",
            f"the change is refused: another process has written version {version} of the store {root} "
            "meanwhile",
            "open the store again and make the change again; nothing of it was written",
        )
    )


def no_library(root: Where, library: str, extra: str) -> StoreProblem:
    """Return the problem of a missing library for object stores."""
    note = f'install it: pip install "zodiacedge[{extra}]"'
    return _problem("D019", f"the store {root} needs {library}, which is not installed", note)


def unreachable(root: Where, why: str) -> StoreProblem:
    """Return the problem of an object store that refuses or does not answer."""
    return _problem(
        "D020",
        f"{root} cannot be reached: {why}",
        "check the bucket, the credentials and the endpoint: docs/store.md says where they come from",
    )


def own_files(folder: Where, why: str) -> StoreProblem:
    """Return the problem of a stream that would read its own files."""
    return _problem("D023", f"files cannot arrive in {folder}: {why}", "name a folder of their own")


def leads_elsewhere(path: Where) -> StoreProblem:
    """Return the problem of a link among the files of a store: a write would follow it."""
    return _problem(
        "D022",
        f"{path} is a link or no ordinary file, and a store has none",
        "if you trust the store, copy it with what its links lead to: cp -rL",
    )


def damaged_log(path: Where, record: int, offset: int, why: str, sound: int) -> StoreProblem:
    """Return the problem of a damaged record of the log."""
    return _problem(
        "D004",
        f"record {record} of {path}, at byte {offset}, is damaged: {why}",
        f"restore the file from a copy; version {sound} and those before can still be read: --at {sound}",
    )


def damaged_table(path: Where, why: str) -> StoreProblem:
    """Return the problem of a damaged file of the table."""
    return _problem("D005", f"{path} {why}", "restore the file from a copy of the store")


def unreadable(root: Where, error: OSError) -> StoreProblem:
    """Return the problem of a store that the operating system cannot read."""
    note = "check the name of the folder, and the rights of it, of those above and of what is in it"
    return _problem("D024", f"the store {root} cannot be read: {error.strerror or error}", note)


def newer_format(path: Where, made: object, known: int) -> StoreProblem:
    """Return the problem of a file in a newer format."""
    return _problem(
        "D006",
        f"{path} has the format {made}, and this version reads up to {known}",
        "use a newer version of zodiacedge",
    )


def unwritable(path: Where, error: OSError, then: str = "") -> StoreProblem:
    """Return the problem of a failed write; `then` states the consequence."""
    note = "check the disk"
    if error.errno in _FULL:
        note = "make room on the disk"
    elif error.errno in _FORBIDDEN:
        note = "check its rights, or read only: zodiac query, or ze.open(…, read_only=True)"
    message = f"{path} cannot be written: {error.strerror or error}"
    return _problem("D007", message, f"{note}; {then}" if then else note)


def only_logged(problem: StoreProblem) -> StoreProblem:
    """Return a problem of the table with a note that the log has all changes."""
    then = "all changes are in the log: none is lost, and none is to be made again"
    return StoreProblem(replace(d, note=f"{d.note}; {then}") for d in problem.diagnostics)


def no_version(wanted: int, first: int, last: int) -> StoreProblem:
    """Return the problem of a version that does not exist, or is no longer kept."""
    kept = f"versions {first} to {last} are kept" if first < last else f"only version {last} is kept"
    return _problem("D008", f"there is no version {wanted}", f"{kept}; zodiac log lists them")


def read_only(root: Where) -> StoreProblem:
    """Return the problem of a change to a store that is open for reading only."""
    return _problem("D009", f"the store {root} is open for reading only", "open it without read_only and at")


def no_refresh(root: Where) -> UsageProblem:
    """Return the problem of refreshing a store that is open for writing."""
    message = f"the store {root} is open for writing, and has no newer versions to move to"
    return UsageProblem(Diagnostic("U028", message, "open it for reading: ze.open(…, read_only=True)"))


def no_bound_of_bytes(root: Where) -> UsageProblem:
    """Return the problem of a bound of bytes for a store whose files stay for a day in any case."""
    return UsageProblem(
        Diagnostic(
            "U021",
            f"the store {root} can have no bound of bytes: in an object store every file stays for a day",
            "set a time only: kb.retain(timedelta(days=2))",
        )
    )


def not_reproduced(root: Where, version: int, why: str) -> StoreProblem:
    """Return the problem of a version whose counts differ from the recorded ones."""
    return _problem(
        "D010",
        f"version {version} of the store {root} does not come to what was recorded: {why}",
        "restore the store from a copy; zodiac query --at reads earlier versions",
    )


def unusable(root: Where, why: str) -> StoreProblem:
    """Return the problem of a store that is no longer open."""
    return _problem("D012", f"the store {root} takes no more changes: {why}", "open it again")


def unregistered(root: Where, missing: Iterable[Diagnostic]) -> StoreProblem:
    """Return the problem of rules that call unregistered functions or aggregates."""
    names = "; ".join(dict.fromkeys(d.message for d in missing))
    return _problem(
        "D013",
        f"the rules of the store {root} cannot be evaluated: {names}",
        "register it when the store is opened: --functions FILE.py, or ze.open(…, functions=[…])",
    )


def torn(path: Where, offset: int) -> Diagnostic:
    """Return the warning about a torn record, which was never acknowledged."""
    return Diagnostic(
        "W014",
        f"the last record of {path}, at byte {offset}, was not written to its end and is left out",
        "its change was never acknowledged: a process was killed, or the power failed",
        severity="warning",
    )


def left_out(warning: Diagnostic) -> Diagnostic:
    """Return that warning for a reader, which holds no lock: a writer may be writing the record."""
    return replace(warning, note=f"{warning.note}, or a writer is at it now")


def _problem(code: str, message: str, note: str) -> StoreProblem:
    return StoreProblem(Diagnostic(code, message, note))
