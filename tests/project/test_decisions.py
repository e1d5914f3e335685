"""The list of decisions names every decision, with its title, and no number is left out."""

from __future__ import annotations

import re
from pathlib import Path

DECISIONS = Path(__file__).resolve().parents[2] / "docs" / "decisions"


def test_the_list_has_every_decision_under_its_title() -> None:
    files = sorted(DECISIONS.glob("0*.md"))
    headings = [path.read_text(encoding="utf-8").partition("\n")[0] for path in files]
    listed = re.findall(
        r"^\| \[(\d+)\]\((.+)\) \| (.+) \|$", (DECISIONS / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert [f"# {number}: {title}" for number, _, title in listed] == headings
    assert [file for _, file, _ in listed] == [path.name for path in files]
    assert [int(number) for number, _, _ in listed] == list(range(1, len(files) + 1))
