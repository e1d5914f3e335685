"""How many examples a random test tries."""

from __future__ import annotations

import os


def examples(usual: int) -> int:
    """Return the number of examples: the environment variable ZODIAC_EXAMPLES, or the usual one."""
    return int(os.environ.get("ZODIAC_EXAMPLES", usual))
