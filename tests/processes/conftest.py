"""Tests on Spark in processes of their own; any worker may run them, beside the session of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True, scope="module")
def short_lived() -> Iterator[None]:
    """Java compiles for processes that live for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        patch.setenv("PYSPARK_SUBMIT_ARGS", f'--driver-java-options "{options}" pyspark-shell')
        yield


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lies in this folder."""
    if item.path.resolve().is_relative_to(HERE):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.usefixtures("java"))
