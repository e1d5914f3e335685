"""Compiled kernels on disk: those of this machine's processor, and those that come with the package.

Numba keys its cache by the path of a function's file, and keeps an index per function. Here all kernels of a
target share a folder, a file for each kernel and signature. The same package at another path (in the zip
archive that Spark's executors get, or in an environment that is unpacked there) finds them, and processes
that compile at the same time do not disturb each other.

A kernel is looked up in the folder of this machine's processor first, then among those of the package. If
neither has it, it is compiled and written to the first; the logger `zodiacedge.kernels` gets a record. A
folder that cannot be written to costs only the time to compile.

When a folder is made, those that no process used for two months are removed: of earlier sources and versions.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from zodiacedge.engine.embedded.kernels.folders import (
    FOLDER,
    cache_home,
    mark_used,
    remove_unused,
    takes_files,
    write,
)
from zodiacedge.engine.embedded.kernels.sources import kernel_name, package_folder
from zodiacedge.engine.embedded.kernels.target import KERNELS, Target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

LOGGER = logging.getLogger("zodiacedge.kernels")
_SHIPPED = "compiled"
_TARGET = "target.json"


@dataclass
class KernelSources:
    """Where kernels of this process may come from, and where they came from."""

    from_package: bool = True
    """Whether kernels of the package are used."""
    may_compile: bool = True
    """Whether a kernel that is in no folder is compiled, or raises `NotCompiledError`."""
    own: int = 0
    shipped: int = 0
    compiled: int = 0


LOOKUP = KernelSources()
DISPATCHERS: dict[str, Any] = {}
"""The kernels of this process by name, as Numba has them."""


class NotCompiledError(Exception):
    """A kernel that is in no folder and must not be compiled."""


@contextmanager
def looking_up(*, from_package: bool, may_compile: bool) -> Iterator[KernelSources]:
    """Set in the block where kernels come from that are not loaded yet."""
    before = LOOKUP.from_package, LOOKUP.may_compile
    LOOKUP.from_package, LOOKUP.may_compile = from_package, may_compile
    try:
        yield LOOKUP
    finally:
        LOOKUP.from_package, LOOKUP.may_compile = before


def cache_kernel(dispatcher: Any) -> None:
    """Cache the compiled code of a kernel on disk."""
    # Numba has no public hook: `cache=True` sets the same attribute, with a cache keyed by path.
    dispatcher._cache = _KernelCache(dispatcher.py_func)  # noqa: SLF001
    DISPATCHERS[kernel_name(dispatcher.py_func)] = dispatcher


def own_folder() -> Path | None:
    """Return the folder of kernels for this machine's processor, existing or not; None if none is safe."""
    home = cache_home()
    return home and _folder_in(home)


def takes_kernels() -> bool:
    """Return whether kernels that are compiled can be written to disk."""
    folder = own_folder()
    return folder is not None and takes_files(folder)


@cache
def shipped_obstacle() -> str:
    """Return why the kernels of the package cannot be used; empty if they can."""
    target = _shipped_folder() / _TARGET
    if not target.is_file():
        return "there are none"
    return Target.from_json(target.read_text(encoding="utf-8")).obstacle()


@cache
def _shipped_folder() -> Traversable:
    return package_folder() / "kernels" / _SHIPPED


def _folder_in(home: Path) -> Path:
    return home / FOLDER / Target.here().name


class _KernelCache(_Cache):
    """The cache of one kernel, in the form that Numba's dispatcher asks for."""

    def __init__(self, function: Any) -> None:
        self._name = kernel_name(function)

    @property
    def cache_path(self) -> str:
        return str(own_folder() or "")

    def load_overload(self, sig: object, target_context: Any) -> Any:
        name = self._file(sig)
        folder = own_folder()
        found = _read(folder / name) if folder else None
        if found is not None:
            if LOOKUP.own == 0 and folder:
                mark_used(folder / _TARGET)
            LOOKUP.own += 1
        elif LOOKUP.from_package and not shipped_obstacle():
            found = _read(_shipped_folder() / name)
            LOOKUP.shipped += found is not None
        if found is not None:
            # As Numba's own cache does, but for the registries: kernels need the runtime only.
            rtsys.initialize(target_context)
            return CompileResult._rebuild(target_context, *found)  # type: ignore[no-untyped-call]  # noqa: SLF001
        if not LOOKUP.may_compile:
            raise NotCompiledError(self._name)
        _log_compilation(self._name)
        _load_registries()
        return None

    def save_overload(self, sig: object, data: Any) -> None:
        folder = own_folder()
        if folder is not None:
            with suppress(OSError):
                if not (folder / _TARGET).exists():
                    folder.mkdir(parents=True, exist_ok=True)
                    remove_unused(folder.parent, f"{KERNELS}*/{_TARGET}")
                    write(folder / _TARGET, Target.here().to_json().encode())
                code = dumps(data._reduce())  # type: ignore[no-untyped-call]  # noqa: SLF001 - as above
                write(folder / self._file(sig), code)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: an entry is replaced when its sources change."""

    def _file(self, signature: object) -> str:
        return f"{self._name}-{hashlib.sha256(str(signature).encode()).hexdigest()[:16]}.kernel"


@cache
def _load_registries() -> None:
    """Load what Numba needs to compile, 40 MB of memory; code that was compiled before does without it.

    SciPy's BLAS is left out, which no kernel needs and which is slow to load.
    """
    name = "scipy.linalg.cython_blas"
    missing = name not in sys.modules
    if missing:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    finally:
        if missing:
            del sys.modules[name]


def _read(path: Traversable) -> tuple[Any, ...] | None:
    """Return the parts of a compiled kernel, or None if the file is missing or damaged."""
    try:
        parts: tuple[Any, ...] = pickle.loads(path.read_bytes())  # noqa: S301 - from the user's own folder, or the package
    except Exception:  # noqa: BLE001 - whatever a damaged file raises: the kernel is compiled again
        return None
    return parts


def _log_compilation(kernel: str) -> None:
    LOOKUP.compiled += 1
    if LOOKUP.compiled == 1:
        LOGGER.info("%s", _compilation_message())
    LOGGER.debug("compiling %s", kernel)


def _compilation_message() -> str:
    folder, obstacle = own_folder(), shipped_obstacle() if LOOKUP.from_package else ""
    has_others = (LOOKUP.from_package and not obstacle) or (folder is not None and _has_kernels(folder))
    parts = [
        f"compiling kernels for {Target.here().processor}",
        "some seconds" if has_others else "about half a minute, more on a small machine",
        f"kept in {folder}" if takes_kernels() else "not kept: no folder can be written, see NUMBA_CACHE_DIR",
    ]
    return "; ".join([*parts, f"those of the package cannot be used: {obstacle}"] if obstacle else parts)


def _has_kernels(folder: Path) -> bool:
    with suppress(OSError):
        return (folder / _TARGET).is_file()
    return False
