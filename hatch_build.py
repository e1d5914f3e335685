"""The build hook of the wheel: kernels are compiled and linked when it is built, for a portable processor.

A wheel with kernels is for one version of Python and one platform. `ZODIAC_PURE_WHEEL=1` builds one without
them, for any, and so does a build where Numba cannot be installed. An editable install never has them: the
sources of a clone change. `docs/decisions/0035-platform-wheels-have-kernels.md` has the reasons.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PURE = "ZODIAC_PURE_WHEEL"
# What most machines of an architecture can stand in for; `kernels/target.py` checks that a machine does.
_PROCESSORS = {"x86_64": "x86-64-v2", "amd64": "x86-64-v2"}
_COMPILE = "zodiacedge.engine.embedded.warm_up"
_KERNELS = "zodiacedge/engine/embedded/kernels/compiled"


class KernelHook(BuildHookInterface[Any]):
    """Compiles the kernels into a temporary folder, and includes it in the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what compiling needs beyond the build backend."""
        needed = ("numba", "numpy", "pyarrow")
        core = self.metadata.core
        every = [*core.dependencies, *core.optional_dependencies["tables"]]
        return [] if _is_pure() else [d for d in every if d.startswith(needed)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, unless the wheel is to be pure or an editable install."""
        if version == "editable" or _is_pure():
            return
        if find_spec("numba") is None:
            self.app.display_warning("Numba is not installed: the wheel has no compiled kernels")
            return
        folder = Path(tempfile.mkdtemp(prefix="zodiacedge-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.app.display_waiting("Compiling the kernels, about half a minute ...")
        source = Path(self.root) / "src"
        environment = os.environ | {
            "NUMBA_CACHE_DIR": str(folder),
            "NUMBA_CPU_NAME": _PROCESSORS.get(platform.machine().lower(), "generic"),
            "NUMBA_CPU_FEATURES": "",
            "ZODIAC_JIT": "1",
        }
        for setting in ("ZODIAC_PURE_PYTHON", "PYTHONSAFEPATH"):
            environment.pop(setting, None)
        # Sources are found as the current folder, not by PYTHONPATH: pip's isolation drops from the path
        # whatever the environment that runs it has, and that may be an editable install of this very clone.
        for step in (["compile"], ["link", str(folder / "linked")]):
            command = [sys.executable, "-m", _COMPILE, *step]
            done = subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our module
        outcome = json.loads(done.stdout)
        if outcome["unlinked"]:
            self.app.display_warning(f"The kernels need Numba to run: {outcome['unlinked']}")
        (compiled,) = (folder / "zodiacedge").iterdir()
        for linked in (folder / "linked").glob("*"):
            linked.rename(compiled / linked.name)
        build_data["force_include"][str(compiled)] = _KERNELS
        build_data["pure_python"] = False
        build_data["tag"] = _tag()


def _is_pure() -> bool:
    return bool(os.environ.get(_PURE))


def _tag() -> str:
    """Return the tag of the installed Numba: its kernels run where it runs."""
    wheel = metadata.distribution("numba").read_text("WHEEL") or ""
    fields = [line.partition(": ") for line in wheel.splitlines()]
    tags = [text.strip().split("-") for field, _, text in fields if field == "Tag"]
    python, abi, _ = tags[0]
    return f"{python}-{abi}-{'.'.join(system for _, _, system in tags)}"
