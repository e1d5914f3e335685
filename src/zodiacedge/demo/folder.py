"""The folder that `zodiac demo` leaves behind: its paths, and its removal before the next demo."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zodiacedge.cli.output import check_folder, write_text
from zodiacedge.errors import Diagnostic, LoadProblem

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_LINE = "Made by zodiac demo, which removes it when it is played again into this folder."
_NOTES = f"""{_FIRST_LINE}

farm.nt      what the sensors of the farm observed in the morning, as RDF
landing/     what they observed at noon
farm.zodiac  the store of the centre: two versions
turbines/    the store of each turbine, cut from that of the centre
pictures/    the farm at noon; the rules of the centre; those of two turbines while they looked for a reason
story.json   the story, for machines
spark.log    what Spark said when it started

Try:
  zodiac log farm.zodiac
  zodiac diff farm.zodiac 1 2 --show-facts 5
  zodiac rules turbines/wt01.zodiac
  zodiac log turbines/wt01.zodiac
  zodiac query farm.zodiac '?- farm:unusual(T, P) .'
"""


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The paths of the files that the demo leaves behind."""

    root: Path

    @property
    def data(self) -> Path:
        """The observations of the morning."""
        return self.root / "farm.nt"

    @property
    def store(self) -> Path:
        """The store of the centre."""
        return self.root / "farm.zodiac"

    @property
    def landing(self) -> Path:
        """The folder that files arrive in at noon."""
        return self.root / "landing"

    @property
    def turbines(self) -> Path:
        """The stores of the turbines."""
        return self.root / "turbines"

    @property
    def pictures(self) -> Path:
        """The folder of the pictures."""
        return self.root / "pictures"

    @property
    def log(self) -> Path:
        """The start messages of Java and Spark."""
        return self.root / "spark.log"

    @property
    def notes(self) -> Path:
        """A description of the folder, with commands to try."""
        return self.root / "README.txt"

    @property
    def document(self) -> Path:
        """The results of the story as JSON."""
        return self.root / "story.json"

    def prepare(self) -> None:
        """Create the folder, and remove the files of an earlier demo; raise if it holds other files."""
        check_folder(self.root)
        if self.root.exists() and any(self.root.iterdir()):
            if not self.notes.is_file() or not self.notes.read_bytes().startswith(_FIRST_LINE.encode()):
                problem = f"{self.root} cannot be written: it holds something else than an earlier demo"
                raise LoadProblem(Diagnostic("U005", problem, "name another place with --out"))
            for folder in (self.store, self.landing, self.turbines, self.pictures):
                shutil.rmtree(folder, ignore_errors=True)
            for file in (self.data, self.document, self.log):
                file.unlink(missing_ok=True)
        write_text(self.notes, _NOTES)
        self.landing.mkdir()
