"""The sources of kernels: where they are, and a hash of them.

Compiled kernels are found by the hash: an edit in a function that another file calls is noticed.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

# Sources that have no kernel, and say what kernels become, or which are there.
_OTHERS = {"layout.py", "intrinsics.py", "link.py", "entries.c", "warm_up.py"}


def package_folder() -> Traversable:
    """Return the folder of the embedded engine, which has all kernels."""
    here = Path(__file__).parents[1]
    if here.is_dir():
        return here
    # The package is in a zip archive.
    from importlib.resources import files  # noqa: PLC0415 - slow to load, and seldom needed

    return files(str(__package__).rpartition(".")[0])


def kernel_name(function: Callable[..., Any]) -> str:
    """Return what a kernel is called on disk: its name, and its module below the embedded engine."""
    return f"{function.__module__.partition('.embedded.')[2]}.{function.__qualname__}"


@cache
def hash_of_sources() -> str:
    """Return a hash of all sources with kernels."""
    digest = hashlib.sha256()
    for text in _sources(package_folder()):
        digest.update(text)
    return digest.hexdigest()[:16]


def _sources(folder: Traversable) -> Iterator[bytes]:
    for source in sorted(folder.iterdir(), key=lambda path: path.name):
        if source.name in _OTHERS:
            yield source.read_bytes()
        elif source.is_dir():
            yield from _sources(source)
        elif source.name.endswith(".py"):
            text = source.read_bytes()
            if b"@kernel" in text:
                yield text
