"""An environment with the package in it, as `pip install zodiacedge` would leave it, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

import zodiacedge

if TYPE_CHECKING:
    from collections.abc import Iterator


def needed(name: str, known: set[str]) -> Iterator[Distribution]:
    """Return what a distribution needs to run, however deep; `known` tells what was told already."""
    for text in distribution(name).requires or ():
        one = Requirement(text)
        if one.name not in known and (one.marker is None or one.marker.evaluate({"extra": ""})):
            known.add(one.name)
            yield distribution(one.name)
            yield from needed(one.name, known)


def make(folder: Path) -> None:
    """Make an environment, and put the package and all that it needs into it, as they are here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (target,) = folder.glob("lib/python*/site-packages")
    for one in needed("zodiacedge", set()):
        for path in one.files or ():
            # Scripts lie outside.
            if ".." not in path.parts and path.suffix != ".pyc":
                place = target / path
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(path.locate()), place)
    package = Path(zodiacedge.__file__).parent
    shutil.copytree(package, target / package.name, ignore=shutil.ignore_patterns("__pycache__"))
