"""New results become the committed ones, and the page is generated again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge_bench.evaluation.baseline import read_profiles, read_results, write_results
from zodiacedge_bench.evaluation.page import IMAGES, page

if TYPE_CHECKING:
    from collections.abc import Iterator

BASELINE = Path("bench/baseline")
PAGE = Path("docs/evaluation.md")
_PLOTS = "paper-*.svg"


def accept(results: Path, repository: Path) -> Iterator[Path]:
    """Take over the results of a folder into a repository; yield the files that are written."""
    baseline = repository / BASELINE
    new = read_results(results)
    write_results(new, baseline)
    yield from (baseline / f"{name}.json" for name in new)
    images = repository / PAGE.parent / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for plot in sorted(results.glob(_PLOTS)):
        yield Path(shutil.copy(plot, images))
    path = repository / PAGE
    path.write_text(page(read_results(baseline), read_profiles(baseline)), encoding="utf-8")
    yield path
