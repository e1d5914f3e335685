"""Writers that are to be killed: each changes a store for ever, and says what was acknowledged.

Run as a program that reads lines, each with the folder of a store and a number for random changes.
"""

from __future__ import annotations

import os
import random
import sys
from hashlib import sha256
from importlib import import_module

import zodiacedge as ze
from zodiacedge.language.printer import format_atom, format_rule

RULES = (
    "r1: path(X, Y) :- edge(X, Y) .",
    "r2: path(X, Z) :- path(X, Y), edge(Y, Z) .",
    "r3: reach(X, N) :- AGGREGATE(path(X, Y)) ON X WITH COUNT(Y) AS N .",
)


def say(line: str) -> None:
    """Say something before going on."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def state_of(kb: ze.KnowledgeBase) -> str:
    """Return a digest of what a knowledge base was told: its explicit facts and its rules."""
    facts, rules = sorted(map(format_atom, kb.explicit)), sorted(map(format_rule, kb.rules))
    return sha256(repr((facts, rules)).encode()).hexdigest()


def main(store: str, seed: int) -> None:
    """Change the store until somebody ends it."""
    chance = random.Random(seed)
    kb = ze.open(store, create=True)
    assert kb.store is not None
    # Folding is met often, too.
    kb.store.flush_bytes = chance.choice((3_000, 20_000, 1_000_000))
    say(f"open {kb.version}")
    while True:
        number = kb.version + 1
        with kb.change(f"change {number}") as c:
            # Each version leaves a mark, so that nobody can take one for another.
            c.add_facts([("mark", number, chance.random())])
            for _ in range(chance.randint(0, 3)):
                c.add_facts([("edge", chance.randint(0, 8), chance.randint(0, 8))])
            c.remove_facts([("edge", chance.randint(0, 8), chance.randint(0, 8))])
            rule = chance.choice(RULES)
            if chance.random() < 0.2:
                (c.remove_rules if chance.random() < 0.4 else c.add_rules)(rule)
        say(f"done {number} {state_of(kb)}")
        if chance.random() < 0.03:
            kb.vacuum()
        if chance.random() < 0.05:
            kb.close()
            kb = ze.open(store)


def serve() -> None:
    """Start a writer for each line with a store and a number, say who it is, and when it is gone."""
    for line in sys.stdin:
        store, seed = line.rsplit(maxsplit=1)
        child = os.fork()
        if not child:
            main(store, int(seed))
        say(f"writer {child}")
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    # All that a writer loads, loaded once; nothing of it runs yet, so no thread is lost by a fork.
    for name in ("engine.embedded.engine", "store.store", "store.versions.replay", "store.flush"):
        import_module(f"zodiacedge.{name}")
    for name in ("deltalake", "deltalake.transaction", "pyarrow.parquet"):
        import_module(name)
    serve()
