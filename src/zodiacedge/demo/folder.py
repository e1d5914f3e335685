"""The folder that `zodiac demo` leaves behind: its paths, and its removal before the next demo."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from zodiacedge.cli.output import check_folder, write_text
from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_LINE = "Made by zodiac demo, which removes it when it is played again into this folder."
_NOTES = f"""{_FIRST_LINE}

farm.nt      observations of the sensors in the morning, as RDF
landing/     observations at noon
farm.zodiac  the store of the centre: two versions
turbines/    the store of each turbine, cut from that of the centre
pictures/    the farm at noon; the rules of the centre; those of two turbines during the diagnosis, and
             why their sensors are called broken, or not
story.json   the results as JSON
spark.log    the messages of Spark at its start

Try:
  zodiac log farm.zodiac
  zodiac diff farm.zodiac 1 2 --show-facts 5
  zodiac rules turbines/wt01.zodiac
  zodiac log turbines/wt01.zodiac
  zodiac query farm.zodiac '?- farm:unusual(T, P) .'
  zodiac explain farm.zodiac 'farm:unusual(T, P)' --limit 1
"""


class DemoFolder:
    """The paths of the files that the demo leaves behind."""

    def __init__(self, root: Path) -> None:
        """Set the paths below a folder; nothing is created."""
        self.root = root
        self.data = root / "farm.nt"
        self.landing = root / "landing"
        self.store = root / "farm.zodiac"
        self.turbines = root / "turbines"
        self.pictures = root / "pictures"
        self.document = root / "story.json"
        self.log = root / "spark.log"
        self.notes = root / "README.txt"

    def prepare(self) -> None:
        """Create the folder, and remove the files of an earlier demo; raise if it holds other files."""
        check_folder(self.root)
        if self.root.exists() and any(self.root.iterdir()):
            if not self.notes.is_file() or not self.notes.read_bytes().startswith(_FIRST_LINE.encode()):
                problem = f"{self.root} cannot be written: it holds other files than those of a demo"
                raise LoadProblem(Diagnostic("U005", problem, "name another folder with --out"))
            for folder in (self.store, self.landing, self.turbines, self.pictures):
                shutil.rmtree(folder, ignore_errors=True)
            for file in (self.data, self.document, self.log):
                file.unlink(missing_ok=True)
        write_text(self.notes, _NOTES)
        self.landing.mkdir()
