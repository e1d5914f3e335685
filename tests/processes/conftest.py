"""Tests on Spark in processes of their own; any worker may run them, beside the session of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lies in this folder."""
    if item.path.resolve().is_relative_to(HERE):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.usefixtures("java"))
