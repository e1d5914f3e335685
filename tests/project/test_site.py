"""The documentation builds without a warning, and loads nothing from the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zodiacedge

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not with --quiet: that hides the warnings from --strict as well.
    built = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_no_page_fetches_a_style_a_script_or_a_picture_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|link)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    pages = list(site.rglob("*.html"))
    assert pages
    assert [f"{p.name}: {m}" for p in pages for m in fetched.findall(p.read_text(encoding="utf-8"))] == []


def test_the_api_page_describes_every_public_name(site: Path) -> None:
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    described = {name.rsplit(".", 1)[-1] for name in re.findall(r'id="(zodiacedge\.[^"]+)"', page)}
    assert {*zodiacedge.__all__} - described == {"open"}, "ze.open is described as open_kb"
    assert "open_kb" in described
