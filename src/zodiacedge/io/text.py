"""Text files as a whole, such as rule files and session files: UTF-8, with or without a byte order mark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.io.problems import problem

if TYPE_CHECKING:
    import os


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, or raise an error with the reason."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise problem("U004", f"there is no file {path}", "check the name") from error
    except OSError as error:
        raise problem(
            "U004", f"{path} cannot be read: {error.strerror or error}", "check its rights"
        ) from error
    return decoded(data, str(path))


def decoded(data: bytes, name: str) -> str:
    """Return the text of the bytes of a file, or raise an error with the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise problem(
            "U004",
            f"{name} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
            "save it as UTF-8",
        ) from error
