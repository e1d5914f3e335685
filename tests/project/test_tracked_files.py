"""What the repository must not hold: places of one machine, and where packages were fetched from."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.:/>-])/(?:home|root|work|Users)/\w"),
    "a file address of one machine": re.compile(r"file:///(?:home|root|work|Users|opt)/"),
    "a package registry's host": re.compile(r"\bpypi\.org|\bpythonhosted\.org|\bconda\.anaconda\.org"),
    "a folder outside the repository": re.compile(r"\.\./shared\b"),
}


def tracked_files() -> list[Path]:
    """Return the files that git holds or would take: tracked ones and new ones that are not ignored."""
    git = shutil.which("git")
    if not git or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def findings(text: str) -> list[str]:
    return [
        f"{number}: {what}: {line.strip()[:120]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def test_no_tracked_file_names_a_place_outside_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{finding}"
        for path in tracked_files()
        for finding in findings(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "home/ann/zodiac",
        "open('/" + "work/main')",
        "--extra-index-url https://pypi" + ".org/simple",
        "read('.." + "/shared/data')",
        "-f file:///" + "opt/wheels",
    ],
)
def test_each_kind_is_recognised(line: str) -> None:
    assert len(findings(line)) == 1


@pytest.mark.parametrize("line", ["<http://example.org/home/ann>", "src/work/a.py", "PyPI", "./shared/a"])
def test_innocent_lines_pass(line: str) -> None:
    assert findings(line) == []
