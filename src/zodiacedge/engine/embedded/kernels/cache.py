"""The disk cache of compiled kernels, keyed by a hash of their sources.

Numba keys its cache by the path of a function's file. The same package at another path (in the zip archive
that Spark's executors get, or in an environment that is unpacked there) would compile all kernels again. And
Numba does not notice an edit in a function that another file calls. Here one hash of all sources with kernels
is the stamp of every kernel, and all of them share a folder.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

_FOLDER = "zodiacedge"


def use_folder() -> None:
    """Set the cache folder of this process and its children, unless NUMBA_CACHE_DIR is set."""
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = str(_own_folder())


def cache_kernel(dispatcher: Any) -> None:
    """Cache the compiled code of a kernel on disk."""
    # Numba has no public hook: `cache=True` sets the same attribute, with a cache keyed by path.
    dispatcher._cache = _KernelCache(dispatcher.py_func)  # type: ignore[no-untyped-call]  # noqa: SLF001


@cache
def _stamp() -> str:
    digest = hashlib.sha256()
    for text in _sources(_package()):
        digest.update(text)
    return digest.hexdigest()[:16]


def _sources(folder: Traversable) -> Iterator[bytes]:
    for source in sorted(folder.iterdir(), key=lambda path: path.name):
        if source.is_dir():
            yield from _sources(source)
        elif source.name.endswith(".py"):
            text = source.read_bytes()
            if b"@kernel" in text or source.name == "layout.py":
                yield text


def _package() -> Traversable:
    """Return the folder of the embedded engine, all of whose kernels share one cache."""
    here = Path(__file__).parents[1]
    if here.is_dir():
        return here
    # The package is in a zip archive.
    from importlib.resources import files  # noqa: PLC0415 - slow to load, and seldom needed

    return files(str(__package__).rpartition(".")[0])


def _own_folder() -> Path:
    name = f"kernels-{_stamp()}-{sys.implementation.cache_tag}-numba-{numba.__version__}"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zodiacedge" / name
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.R_OK | os.W_OK):
            return folder
    # A service may have no home folder to write to: it compiles once per start.
    return Path(tempfile.mkdtemp(prefix=f"zodiacedge-{name}-"))


class _ByContent(_CacheLocator):
    """Numba's locator of a cached function, with the stamp of all sources."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(Path(os.environ["NUMBA_CACHE_DIR"]) / _FOLDER)

    def get_source_stamp(self) -> str:
        return _stamp()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., object], file: str) -> _ByContent:
        return cls(function, file)


class _Kernels(CompileResultCacheImpl):
    _locator_classes = [_ByContent]  # noqa: RUF012 - as Numba has it


class _KernelCache(FunctionCache):
    """A cache that ignores failures to write: the folder may be read-only, or the disk full."""

    _impl_class = _Kernels

    def load_overload(self, sig: object, target_context: object) -> object:
        with suppress(OSError):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
