"""How many examples a random test tries, and from which on."""

from __future__ import annotations

import os


def examples(usual: int) -> int:
    """Return the number of examples: the environment variable ZODIAC_EXAMPLES, or the usual one."""
    return int(os.environ.get("ZODIAC_EXAMPLES", usual))


def first_seed(usual: int) -> int:
    """Return the seed of the first example: the environment variable ZODIAC_SEED, or the usual one."""
    return int(os.environ.get("ZODIAC_SEED", usual))
