"""Kernels that were linked into a module of their own: they run without Numba.

A wheel brings such a module for a portable processor, and `zodiac warm` makes one for this machine's, which
is used instead. It has the kernels that Python calls. What only kernels call is in there too, but not
callable: such a kernel or instruction is compiled by Numba in the moment that Python calls it, as tests do.

`link` makes the modules.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from zodiacedge.engine.embedded.kernels.folders import FOLDER, cache_home, mark_used
from zodiacedge.engine.embedded.kernels.sources import hash_of_sources, kernel_name, package_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Kernel = TypeVar("_Kernel", bound="Callable[..., Any]")

LINKED = "linked-"
"""What the names of files with linked kernels start with."""
_MODULE = "zodiacedge.engine.embedded.kernels.compiled.linked"
# What tells a processor from others in the list of the system.
_PROCESSOR = ("vendor_id", "cpu family", "model", "flags", "CPU ", "Features")


def shipped_name() -> str:
    """Return the name of the file for the portable processor of a wheel."""
    return f"{LINKED}{hash_of_sources()}{EXTENSION_SUFFIXES[0]}"


def own_name() -> str:
    """Return the name of the file for this processor; empty where processors cannot be told apart."""
    processor = _processor()
    return f"{LINKED}{hash_of_sources()}-{processor}{EXTENSION_SUFFIXES[0]}" if processor else ""


def kernel(function: _Kernel) -> _Kernel:
    """Return the linked kernel of a function; one that only kernels call is compiled when Python calls it."""
    found: Any = KERNELS.get(kernel_name(function))
    if found is None:
        found = Deferred(lambda: _by_numba(function))
    else:
        _FUNCTIONS[found] = function
    kernel: _Kernel = found
    return kernel


class Deferred:
    """What Numba compiles when Python calls it, or when a kernel that Python calls does."""

    def __init__(self, make: Callable[[], Any]) -> None:
        """Take a function that returns what Numba has for this."""
        self._make = make

    @cached_property
    def compiled(self) -> Any:
        """What Numba has for this."""
        return self._make()

    def __call__(self, *arguments: Any) -> Any:
        """Compile and call."""
        return self.compiled(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """The type by which Numba takes this for what it stands for."""
        from numba.core.registry import cpu_target  # noqa: PLC0415 - seldom needed

        return cpu_target.typing_context.resolve_value_type(self.compiled)


def _instruction(name: str) -> Deferred:
    def make() -> Any:
        from zodiacedge.engine.embedded.kernels import intrinsics  # noqa: PLC0415 - seldom needed

        return getattr(intrinsics, name)

    return Deferred(make)


def _by_numba(function: Callable[..., Any]) -> Any:
    from numba.core.registry import cpu_target  # noqa: PLC0415 - seldom needed
    from numba.extending import typeof_impl  # noqa: PLC0415 - as above

    from zodiacedge.engine.embedded.kernels import intrinsics  # noqa: PLC0415 - as above

    if not _TYPED:
        before = typeof_impl.dispatch(BuiltinFunctionType)

        @typeof_impl.register(BuiltinFunctionType)
        def type_of(value: Any, context: Any) -> Any:
            if value not in _FUNCTIONS:
                return before(value, context)
            if value not in _TYPED:
                _TYPED[value] = intrinsics.kernel(_FUNCTIONS[value])
            return cpu_target.typing_context.resolve_value_type(_TYPED[value])

        _TYPED[type_of] = None
    return intrinsics.kernel(function)


def _load() -> tuple[dict[str, Callable[..., Any]], Path | None]:
    """Return the linked kernels by name, and their file: for this processor, else of the package."""
    if os.environ.get("ZODIAC_JIT") or os.environ.get("ZODIAC_PURE_PYTHON"):
        return {}, None
    for path in _candidates():
        # Not Path.is_file, which raises for a folder that may not be entered.
        if os.path.isfile(path):  # noqa: PTH113 - as above
            loader = ExtensionFileLoader(_MODULE, str(path))
            spec = spec_from_file_location(_MODULE, path, loader=loader)
            try:
                module = module_from_spec(spec) if spec else None
            except (ImportError, SystemError):
                # A processor that lacks something, or another C library.
                continue
            if path.parent.name == FOLDER:
                mark_used(path)
            return getattr(module, "KERNELS", {}), path
    return {}, None


def _candidates() -> Iterator[Path]:
    home, name = cache_home(), own_name()
    if home and name:
        yield home / FOLDER / name
    here = package_folder()
    if isinstance(here, Path):
        yield here / "kernels" / "compiled" / shipped_name()


def _processor() -> str:
    """Return a name that tells this machine's processor from others; empty where that cannot be done."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            first = file.read(8192).partition(b"\n\n")[0].decode("ascii", "replace")
    except OSError:
        return ""
    told = [line for line in first.splitlines() if line.startswith(_PROCESSOR)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:8] if told else ""


_FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_TYPED: dict[Any, Any] = {}
KERNELS, FILE = _load()
"""The linked kernels by name, and the file that has them; none where there is none that fits."""

load8, load32, load64, store8, store32, store64 = map(
    _instruction, ("load8", "load32", "load64", "store8", "store32", "store64")
)
set_bits8, prefetch32, as_double, as_bits = map(
    _instruction, ("set_bits8", "prefetch32", "as_double", "as_bits")
)
multiply63, lowest_bit, count_bits = map(_instruction, ("multiply63", "lowest_bit", "count_bits"))
