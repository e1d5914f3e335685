"""What compiled kernels depend on: their sources, Python, Numba and a processor.

Kernels in the cache are for the processor of this machine. Those that come with a platform wheel are for a
portable processor, which most machines of an architecture can stand in for.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from functools import cache

import llvmlite
import numba
from llvmlite import binding
from numba.core.registry import cpu_target

from zodiacedge.engine.embedded.kernels.sources import hash_of_sources

KERNELS = "kernels-"
"""What the names of folders with kernels start with."""

# The processors of platform wheels, by LLVM's names, and the features that a machine needs to run their code.
PORTABLE = {
    "generic": (),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
}


@dataclass(frozen=True)
class Target:
    """What a set of compiled kernels is for."""

    sources: str
    """A hash of all sources with kernels."""
    python: str
    numba: str
    llvmlite: str
    system: str
    """Architecture and operating system, in LLVM's words."""
    processor: str
    features: str
    """What the processor has beyond its name, in LLVM's words."""

    @classmethod
    @cache
    def here(cls) -> Target:
        """Return what this process compiles for."""
        triple, processor, features = cpu_target.target_context.codegen().magic_tuple()
        return cls(
            sources=hash_of_sources(),
            python=str(sys.implementation.cache_tag),
            numba=numba.__version__,
            llvmlite=llvmlite.__version__,
            # On macOS the release of the system stands at the end.
            system=triple.rstrip(".0123456789"),
            processor=processor,
            features=features,
        )

    @classmethod
    def from_json(cls, text: str) -> Target:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """Return the fields as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @property
    def name(self) -> str:
        """A name for a folder: readable, and different for different targets."""
        digest = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return f"{KERNELS}{self.sources}-{self.python}-numba-{self.numba}-{self.processor}-{digest}"

    def obstacle(self) -> str:
        """Return why this process cannot run kernels of this target; empty if it can."""
        here = Target.here()
        if self.system != here.system:
            return f"they are for {self.system}, and this is {here.system}"
        if self.python != here.python:
            return f"they are for {self.python}, and this is {here.python}"
        if (self.numba, self.llvmlite) != (here.numba, here.llvmlite):
            return (
                f"they are for Numba {self.numba} with llvmlite {self.llvmlite}, and installed are "
                f"{here.numba} and {here.llvmlite}"
            )
        if self.sources != here.sources:
            return "the sources were edited"
        if self.processor not in PORTABLE:
            return "" if self == here else f"they are for {self.processor}, and this is {here.processor}"
        features = binding.get_host_cpu_features() if PORTABLE[self.processor] else {}
        missing = [name for name in PORTABLE[self.processor] if not features.get(name)]
        return f"they need a processor with {', '.join(missing)}" if missing else ""
