"""Runs Python files that register functions and aggregates for a command.

A file defines `register(kb)`, which calls `kb.function(…)` and `kb.aggregate(…)` as a host program does. The
file is the user's own code: it runs with the rights of the command.
"""

from __future__ import annotations

import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from zodiacedge.engine.registry import AggregateFunction, Function, Registry
from zodiacedge.errors import Diagnostic, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_EXAMPLE = "a file registers functions so: def register(kb): kb.function(fahrenheit)"


def registered(paths: Iterable[str]) -> Registry:
    """Run files and return the functions and aggregates that they register."""
    registrar = _Registrar()
    for path in paths:
        _register(path)(registrar)
    return registrar.registry


class _Registrar:
    """The methods of a knowledge base that `register` may call."""

    def __init__(self) -> None:
        self.registry = Registry()

    def function(self, call: Callable[..., object], *, name: str = "", vectorised: bool = False) -> object:
        self.registry = self.registry.with_function(Function(name or call.__name__, call, vectorised))
        return call

    def aggregate(self, call: Callable[..., object], *, name: str = "", vectorised: bool = False) -> object:
        self.registry = self.registry.with_fold(AggregateFunction(name or call.__name__, call, vectorised))
        return call


def _register(path: str) -> Callable[[_Registrar], object]:
    """Run a file, and return its function `register`, whose errors are one message too."""
    if not Path(path).is_file():
        raise _problem(f"there is no file {path}", "check the name")
    # The module is not importable by name, so that functions are sent to tasks of Spark by value.
    module = ModuleType(Path(path).stem)
    _run(path, lambda: SourceFileLoader(module.__name__, path).exec_module(module))
    register = getattr(module, "register", None)
    if not callable(register):
        raise _problem(f"{path} defines no function register(kb)", _EXAMPLE)
    return lambda registrar: _run(path, lambda: register(registrar))


def _run(path: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as problem:
        frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == path]
        line = f":{frames[-1].lineno}" if frames else ""
        raise _problem(f"{path}{line} failed: {type(problem).__name__}: {problem}", _EXAMPLE) from problem


def _problem(message: str, note: str) -> UsageProblem:
    return UsageProblem(Diagnostic("U027", message, note))
