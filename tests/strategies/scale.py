"""How many examples a random test tries, and from which on."""

from __future__ import annotations

import os


def examples(usual: int, one_in: int = 1) -> int:
    """Return the number of examples: one in so many of what ZODIAC_EXAMPLES says, or the usual one.

    What takes longer gets fewer, so that the long runs end within an hour or so.
    """
    said = os.environ.get("ZODIAC_EXAMPLES")
    return usual if said is None else max(int(said) // one_in, 1)


def first_seed(usual: int) -> int:
    """Return the seed of the first example: the environment variable ZODIAC_SEED, or the usual one."""
    return int(os.environ.get("ZODIAC_SEED", usual))
