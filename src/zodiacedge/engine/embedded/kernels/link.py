"""Link compiled kernels into a module for Python that needs no Numba.

The code is that of Numba: its modules of LLVM, each with a kernel that Python calls and all that this calls,
are emitted as position-independent code, and the C compiler of the system links them with `entries.c`. That
takes kernels whose arguments and results are words, as they all are. `linked` loads the result.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba import types

from zodiacedge.engine.embedded.kernels.cache import DISPATCHERS
from zodiacedge.engine.embedded.kernels.folders import FOLDER, cache_home, remove_unused, write
from zodiacedge.engine.embedded.kernels.linked import LINKED, own_name, shipped_name
from zodiacedge.engine.embedded.kernels.target import PORTABLE, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_ARGUMENTS = 12
_RESULTS = {types.int64: "w", types.boolean: "b", types.none: "n"}
# What the compiler's runtime can be asked for; kernels are portable only to processors that have all of it.
_ASKABLE = {"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}
# What code may need of the system: the C library's arithmetic, and filling and copying of memory.
_LIBRARY = {"exp", "fmod", "log", "log10", "memcpy", "memmove", "memset", "pow", "sqrt"}
_LINK = {"darwin": ("-bundle", "-undefined", "dynamic_lookup"), "linux": ("-shared", "-Wl,-s")}


class LinkError(Exception):
    """Why kernels cannot be linked."""


def link_shipped(folder: Path) -> Path:
    """Link the kernels that are loaded in this process for the portable processor of a wheel."""
    return _link(folder / shipped_name())


def link_own() -> Path:
    """Link the kernels that are loaded in this process for this processor, into the user's folder."""
    home, name = cache_home(), own_name()
    if home is None or not name:
        raise LinkError("there is no folder for kernels of this processor")
    remove_unused(home / FOLDER, f"{LINKED}*")
    return _link(home / FOLDER / name)


def _link(target: Path) -> Path:
    """Link the kernels that Python has called in this process.

    Raises:
        LinkError: If a C compiler or the headers of Python are missing, or a kernel takes no words.
    """
    command = _compiler()
    here = Target.here()
    code, entries = _compiled(here)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.o").write_bytes(code)
        (folder / "kernels.h").write_text(entries, encoding="utf-8")
        (folder / "entries.c").write_bytes(Path(__file__).with_name("entries.c").read_bytes())
        needed = [f'NEED("{feature}")' for feature in PORTABLE.get(here.processor, ()) if feature in _ASKABLE]
        options = [f"-DPORTABLE={' '.join(needed)}"] if needed else []
        made = folder / "linked"
        done = subprocess.run(  # noqa: S603 - the compiler that Python was built with, or that the user names
            [
                *command,
                "-O2",
                "-fPIC",
                *_LINK[sys.platform],
                *options,
                f"-I{sysconfig.get_path('include')}",
                "entries.c",
                "kernels.o",
                "-lm",
                "-o",
                str(made),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LinkError(f"{command[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, made.read_bytes())
    return target


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if sys.platform not in _LINK:
        raise LinkError(f"kernels are not linked on {sys.platform}")
    if shutil.which(command[0]) is None:
        raise LinkError(f"there is no C compiler: {command[0]} is not found")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise LinkError("the headers of Python are not installed")
    return command


def _compiled(here: Target) -> tuple[bytes, str]:
    """Return the object code of all kernels, and a line about each."""
    whole = binding.parse_assembly("")
    whole.triple = binding.get_process_triple()
    lines = []
    for number, (name, overload) in enumerate(_entries()):
        arguments, result = overload.signature.args, overload.signature.return_type
        if any(kind != types.int64 for kind in arguments) or result not in _RESULTS:
            raise LinkError(f"the kernel {name} takes or returns something else than words")
        if len(arguments) > _MOST_ARGUMENTS:
            raise LinkError(f"the kernel {name} has more than {_MOST_ARGUMENTS} arguments")
        lines.append(f"KERNEL({number}, \"{name}\", {len(arguments)}, '{_RESULTS[result]}')")
        _add(whole, overload, f"kernel_{number}")
    if not lines:
        raise LinkError("no kernel was called")
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=here.processor, features=here.features, opt=3, reloc="pic", codemodel="default"
    )
    whole.data_layout = str(machine.target_data)
    _remove_unreachable(whole, machine)
    missing = {f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")}
    if missing - _LIBRARY:
        raise LinkError(f"kernels call {', '.join(sorted(missing - _LIBRARY))}")
    return machine.emit_object(whole), "\n".join(lines) + "\n"


def _entries() -> Iterator[tuple[str, Any]]:
    """Yield the kernels that Python has called, with what Numba compiled."""
    for name, dispatcher in sorted(DISPATCHERS.items()):
        overloads = list(dispatcher.overloads.values())
        if len(overloads) > 1:
            raise LinkError(f"the kernel {name} is called with arguments of several types")
        for overload in overloads:
            yield name, overload


def _add(whole: Any, overload: Any, name: str) -> None:
    """Add the code of a kernel under a name. What it calls is its own: names are unique per process only."""
    shared = overload.library._get_module_for_linking()  # noqa: SLF001 - Numba links callers by it
    module = binding.parse_bitcode(shared.as_bitcode())
    entry = overload.fndesc.llvm_func_name
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == entry else "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    module.get_function(entry).name = name
    whole.link_in(module)


def _remove_unreachable(whole: Any, machine: Any) -> None:
    """Remove Numba's own entries, and what only those call."""
    options = binding.create_pipeline_tuning_options(speed_level=0)
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, binding.create_pass_builder(machine, options))
