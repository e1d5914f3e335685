"""The facts that a device lets its neighbours see: those of predicates that its owner publishes.

`zodiac:publish("hot") .` publishes a predicate, by its full name or as an IRI; rules may say it, too. What
`zodiac:` means is never published.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.language.ast import Variable, atom
from zodiacedge.language.printer import format_atom
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.kb.knowledge_base import KnowledgeBase

OWN = DEFAULT_PREFIXES["zodiac"]
PUBLISH = f"{OWN}publish"
# So often a version is looked at while somebody waits.
_SECONDS = 0.1


def published(kb: KnowledgeBase) -> list[str]:
    """Return the published facts as text, in order."""
    names = {str(name) for (name,) in kb.query(f"?- <{PUBLISH}>(P) .")}
    return sorted(facts_of(kb, (name for name in names if not name.startswith(OWN))))


def facts_of(kb: KnowledgeBase, names: Iterable[str]) -> set[str]:
    """Return the visible facts of some predicates as text."""
    wanted = set(names)
    with kb.reading():
        predicates = [predicate for predicate in kb.state.predicates() if predicate.name in wanted]
        patterns = [atom(p.name, tuple(Variable(f"V{n}") for n in range(p.arity))) for p in predicates]
        return {
            format_atom(fact, {})
            for pattern in patterns
            for fact in kb.matching(f"?- {format_atom(pattern, {})} .")
        }


def mark_of(facts: Iterable[str]) -> str:
    """Return a mark by which facts are recognised."""
    return sha256("\n".join(facts).encode()).hexdigest()


def news(kb: KnowledgeBase, after: str, seconds: float) -> tuple[str, list[str]]:
    """Wait until the published facts have another mark, for some seconds at most; return mark and facts."""
    end = time.monotonic() + seconds
    version = -1
    while True:
        if kb.version != version:
            version = kb.version
            facts = published(kb)
            mark = mark_of(facts)
        if mark != after or time.monotonic() > end:
            return mark, facts
        time.sleep(_SECONDS)
