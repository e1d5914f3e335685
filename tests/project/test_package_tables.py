"""The docstring of a package that tells of its modules, in a table, tells of all of them and of no others."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "src" / "zodiacedge", ROOT / "bench" / "zodiacedge_bench")
_MOST_MODULES = 15
# Names, two spaces or more, and what they are about; names of files that are no modules have other letters.
_LINE = re.compile(r"^(?: {4})?([a-z][a-z_*/]*(?:, [a-z][a-z_*/]*)*) {2,}\S", re.MULTILINE)


def names_in(package: Path) -> list[str]:
    """Return what the first column of a package's table says."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    return [name.rstrip("/") for names in _LINE.findall(text) for name in names.split(", ")]


PACKAGES = [path.parent for source in SOURCES for path in sorted(source.rglob("__init__.py"))]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_table_of_a_package_names_its_modules_and_no_others(package: Path) -> None:
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    names = names_in(package)
    assert [name for name in modules if not any(fnmatchcase(name, one) for one in names)] == []
    assert [name for name in names if not any(fnmatchcase(one, name) for one in modules)] == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_has_few_modules(package: Path) -> None:
    assert len(list(package.glob("*.py"))) <= _MOST_MODULES + 1
