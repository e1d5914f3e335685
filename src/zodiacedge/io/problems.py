"""The problems of input and output, each with its stable code.

Every function here returns or raises a `LoadProblem` that says what is wrong and what to do, so that
no library's own exception reaches a caller. Which lines of a file are bad is not a problem but a
finding: see `report`.

    I001 no such file               I010 not a Parquet or Arrow file
    I002 not permitted              I011 a column of a type that holds no terms
    I003 nothing matches            I012 bad lines, in strict mode
    I004 unknown extension          I013 a Python row that is no fact
    I005 nothing to load in folder  I014 a fact that RDF cannot say
    I006 not a relation's name      I015 a term that cannot be written
    I007 RDF names its own          I016 writing failed
    I008 damaged or truncated       I017 no such format or compression
    I009 RDF that does not parse    I018 not a base IRI
    I019 reading failed             I020 a predicates.json that is not ours
    I021 no place to read from
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

    from zodiacedge.io.places import Place


def problem(code: str, message: str, note: str = "") -> LoadProblem:
    """Return the one-finding problem of a code."""
    return LoadProblem(Diagnostic(code, message, note))


def missing(path: Place | str) -> LoadProblem:
    """Return the problem of a path, or a URI, that leads nowhere."""
    remote = "://" in str(path)
    note = (
        "check the URI, from its bucket or host on"
        if remote
        else "check the path; relative paths start at the working folder"
    )
    return problem("I001", f"{path} does not exist", note)


@contextmanager
def reading(path: Place | str) -> Iterator[None]:
    """Turn what the system and the decompressors raise while a file is read into problems."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(path) from error
    except PermissionError as error:
        raise problem("I002", f"{path} may not be read", "ask its owner for the right to read it") from error
    except (EOFError, zlib.error) as error:
        raise damaged(path, str(error)) from error
    except OSError as error:
        # gzip and bz2 report bad data as an OSError that carries no number of the system's.
        if error.errno is None:
            raise damaged(path, str(error)) from error
        raise problem("I019", f"{path} cannot be read: {reason(error)}") from error


def damaged(path: Place | str, detail: str) -> LoadProblem:
    """Return the problem of a compressed file that ends early or holds something else."""
    return problem(
        "I008",
        f"{path} is damaged or was cut short: {detail.rstrip('.')}",
        "copy or download the file again; nothing of it was kept",
    )


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn what the system raises while a file is written into a problem."""
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
    """Return the system's own words, without the number and the path."""
    return (error.strerror or str(error)).lower()
