"""ZodiacEdge: a Datalog engine whose rules are live.

Rules and facts come and go while it runs, and their consequences are kept exact::

    rule text ─language→ syntax tree ─graph→ hyper rule dependency graph ─plan→ join orders
    facts ─────io──────→ batches ─────engine→ materialisation ─kb→ changes · queries · reports
                                                               ─store→ versions on disk

The folders are the stages, in reading order; `docs/architecture.md` tells more:

    errors     the exception tree; a diagnostic is data
    util       data structures that know nothing of Datalog
    terms      IRIs, blank nodes and literals
    language   rule text to checked syntax tree
    graph      the hyper rule dependency graph
    plan       join orders
    io         facts in and out of files
    engine     reference, embedded and Spark: evaluation and incremental maintenance
    kb         the knowledge base: changes, queries, reports
    store      a knowledge base that outlives its process
    opening    `ze.open`
    pipeline   streams into a store, slices out of it
    cli        the command `zodiac`
    demo       the wind farm

Most users need `open`::

    import zodiacedge as ze

    kb = ze.open()
    with kb.change() as c:
        c.add_rules("knows(X, Y) :- knows(Y, X) .  knows(ann, bob) .")
    print(list(kb.query("?- knows(bob, X) .")))
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge.engine.limits import Limits
    from zodiacedge.errors import Diagnostic, ZodiacError
    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.query import Prepared
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.subscribe import Notice, Subscription
    from zodiacedge.kb.transaction import Transaction
    from zodiacedge.kb.verify import Difference, Verification
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.opening import open_kb as open  # noqa: A004 - ze.open reads as it should
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase
    from zodiacedge.store.log.record import Entry
    from zodiacedge.terms import IRI, BlankNode, Literal, iri

__version__ = "0.1.0"
__all__ = [
    "IRI",
    "Answers",
    "BlankNode",
    "ChangeReport",
    "Diagnostic",
    "Difference",
    "Entry",
    "Fact",
    "KnowledgeBase",
    "Limits",
    "Literal",
    "Notice",
    "Predicate",
    "Prepared",
    "Rule",
    "StoredKnowledgeBase",
    "Subscription",
    "Transaction",
    "Verification",
    "ZodiacError",
    "iri",
    "open",
]
_HOMES = {
    "zodiacedge.kb.answers": ("Answers",),
    "zodiacedge.kb.query": ("Prepared",),
    "zodiacedge.engine.limits": ("Limits",),
    "zodiacedge.errors": ("Diagnostic", "ZodiacError"),
    "zodiacedge.kb.knowledge_base": ("KnowledgeBase",),
    "zodiacedge.language.ast": ("Fact", "Predicate", "Rule"),
    "zodiacedge.kb.report": ("ChangeReport",),
    "zodiacedge.kb.subscribe": ("Notice", "Subscription"),
    "zodiacedge.kb.verify": ("Difference", "Verification"),
    "zodiacedge.opening": ("open",),
    "zodiacedge.store.knowledge_base": ("StoredKnowledgeBase",),
    "zodiacedge.store.log.record": ("Entry",),
    "zodiacedge.terms": ("IRI", "BlankNode", "Literal", "iri"),
    "zodiacedge.kb.transaction": ("Transaction",),
}

# A program that configures no logging sees nothing of the library's records.
logging.getLogger(__name__).addHandler(logging.NullHandler())

if not TYPE_CHECKING:
    # Names are loaded when they are asked for: the command line must be ready for Ctrl-C before it loads
    # anything that takes time.
    def __getattr__(name: str) -> object:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(home)
        found = getattr(module, "open_kb" if name == "open" else name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
