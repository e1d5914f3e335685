"""A writer on a store that others write, too: whoever is refused opens it again and tries once more.

Run as a program: the address, a name for its facts, how many changes it is to get in, and after how many
bytes it flushes. It says which versions were acknowledged, and how often it was refused.
"""

from __future__ import annotations

import sys

import zodiacedge as ze


def say(line: str) -> None:
    """Say something before going on."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def opened(address: str, flush_bytes: int) -> ze.KnowledgeBase:
    """Open the store; flushing is met often."""
    kb = ze.open(address)
    assert kb.store is not None
    kb.store.flush_bytes = flush_bytes
    return kb


def main(address: str, name: str, changes: int, flush_bytes: int) -> None:
    """Get so many changes in."""
    kb = opened(address, flush_bytes)
    say(f"open {kb.version}")
    number = refused = 0
    while number < changes:
        try:
            with kb.change(f"{name} {number}") as c:
                c.add_facts([("mark", ze.iri(name), number)])
        except ze.ZodiacError as problem:
            if problem.diagnostics[0].code != "D018":
                raise
            refused += 1
            kb.close()
            kb = opened(address, flush_bytes)
            continue
        say(f"done {kb.version} {number}")
        number += 1
    kb.close()
    say(f"refused {refused}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
