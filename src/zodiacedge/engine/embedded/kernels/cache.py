"""Where compiled kernels are kept: by what their sources say, not by where the package lies.

Numba would keep them by the path of the file that a function stands in. So the same package at another path
(in the zip archive that goes to Spark's executors, or in an environment that is unpacked there) would
compile them all again. And Numba does not notice an edit in a function that another file calls. Here a hash
of every source with kernels is the stamp of each, and all of them share a folder.
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
    """Keep kernels in a folder of our own, unless NUMBA_CACHE_DIR names one; our child processes do too."""
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = str(_own_folder())


def keep_compiled(dispatcher: Any) -> None:
    """Keep what becomes of a function that Numba compiles."""
    # There is no other way in: `cache=True` sets the same, with Numba's own notion of a place.
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
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zodiacedge" / name
    try:
        usual.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _spare_folder(name)
    return usual if os.access(usual, os.R_OK | os.W_OK) else _spare_folder(name)


def _spare_folder(name: str) -> Path:
    # Whoever has no home to write to, a service say, compiles once per start.
    return Path(tempfile.mkdtemp(prefix=f"zodiacedge-{name}-"))


class _ByContent(_CacheLocator):
    """Numba's notion of where a function is kept, and whether it is still the same."""

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
    """Keeps what can be kept: a folder that is read-only serves all the same, and so does a full disk."""

    _impl_class = _Kernels

    def load_overload(self, sig: object, target_context: object) -> object:
        with suppress(OSError):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
