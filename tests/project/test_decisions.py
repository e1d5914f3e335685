"""The list of decisions and the site name every decision, with its title, and no number is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"


def test_the_list_has_every_decision_under_its_title() -> None:
    files = sorted(DECISIONS.glob("0*.md"))
    headings = [path.read_text(encoding="utf-8").partition("\n")[0] for path in files]
    listed = re.findall(
        r"^\| \[(\d+)\]\((.+)\) \| (.+) \|$", (DECISIONS / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert [f"# {number}: {title}" for number, _, title in listed] == headings
    assert [file for _, file, _ in listed] == [path.name for path in files]
    assert [int(number) for number, _, _ in listed] == list(range(1, len(files) + 1))


def test_the_site_has_a_page_for_every_decision() -> None:
    pages = re.findall(r"- decisions/(0.*\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert pages == sorted(path.name for path in DECISIONS.glob("0*.md"))
