"""The problems of input and output, each with its stable code.

The functions return or raise a `LoadProblem`, so that exceptions of libraries do not reach callers. Bad
lines of a file are not problems but findings: see `report`.

    I001 no such file               I010 not a Parquet or Arrow file
    I002 not permitted              I011 a column of a type that holds no terms
    I003 nothing matches            I012 bad lines, in strict mode
    I004 unknown extension          I013 a Python row that is not a fact
    I005 nothing to load in folder  I014 a fact that RDF cannot express
    I006 not a relation's name      I015 a term that cannot be written
    I007 RDF names its own          I016 writing failed
    I008 damaged or truncated       I017 no such format or compression
    I009 RDF that does not parse    I018 not a base IRI
    I019 reading failed             I020 a predicates.json that is not ours
    I021 a URI that cannot be read  I022 not a delimiter
    I023 a table without a relation
"""

from __future__ import annotations

import errno
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from zodiacedge.io.paths import AnyPath


def problem(code: str, message: str, note: str = "") -> LoadProblem:
    """Return a problem with one finding."""
    return LoadProblem(Diagnostic(code, message, note))


def missing(path: AnyPath | str) -> LoadProblem:
    """Return the problem of a path or URI that does not exist."""
    remote = "://" in str(path)
    note = (
        "check the URI, from its bucket or host on"
        if remote
        else "check the path; relative paths start at the working folder"
    )
    return problem("I001", f"{path} does not exist", note)


@contextmanager
def reading(path: AnyPath | str) -> Iterator[None]:
    """Convert exceptions of the operating system and of decompressors to problems while a file is read."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(path) from error
    except PermissionError as error:
        raise problem("I002", f"{path} may not be read", "ask its owner for the right to read it") from error
    except (EOFError, zlib.error) as error:
        raise damaged(path, str(error)) from error
    except OSError as error:
        # gzip and bz2 report bad data as an OSError without errno.
        if error.errno is None:
            raise damaged(path, str(error)) from error
        raise problem("I019", f"{path} cannot be read: {reason(error)}") from error


def damaged(path: AnyPath | str, detail: str) -> LoadProblem:
    """Return the problem of a compressed file that is truncated or corrupt."""
    return problem(
        "I008",
        f"{path} is damaged or was cut short: {detail.rstrip('.')}",
        "copy or download the file again; nothing of it was kept",
    )


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Convert exceptions of the operating system to problems while a file is written."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise problem(
            "I015",
            f"{path} cannot be written: {error.object[error.start]!r} is half of a surrogate pair",
            "repair the string where it is made; no file format here can hold it",
        ) from error
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        note = "free some space and export again; no half file was left" if full else "no half file was left"
        raise problem("I016", f"{path} cannot be written: {reason(error)}", note) from error


def reason(error: OSError) -> str:
    """Return the operating system's message, without number and path."""
    return (error.strerror or str(error)).lower()
