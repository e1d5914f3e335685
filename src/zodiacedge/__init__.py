"""ZodiacEdge: a Datalog engine whose rules are live.

Rules and facts come and go while it runs, and their consequences are kept exact::

    rule text ─language→ syntax tree ─checks→ ─graph→ rule graph ─engine→ facts
    facts ─io→ terms ──────────────────────────────────────────────┘
                 ─maintenance→ changes ─knowledge base→ query · report

The folders are the stages, in that order; `docs/architecture.md` tells more. Most users need `open`::

    import zodiacedge as ze

    kb = ze.open()
    with kb.change() as c:
        c.add_rules("knows(X, Y) :- knows(Y, X) .  knows(ann, bob) .")
    print(list(kb.query("?- knows(bob, X) .")))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zodiacedge.answers import Answers, Prepared
    from zodiacedge.engine.limits import Limits
    from zodiacedge.errors import Diagnostic, ZodiacError
    from zodiacedge.knowledge import KnowledgeBase
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.maintenance.report import ChangeReport
    from zodiacedge.maintenance.subscribe import Notice, Subscription
    from zodiacedge.maintenance.verify import Difference, Verification
    from zodiacedge.opening import open_kb as open  # noqa: A004 - ze.open reads as it should
    from zodiacedge.store.entry import Entry
    from zodiacedge.terms import IRI, BlankNode, Literal, iri
    from zodiacedge.transaction import Transaction

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
    "Subscription",
    "Transaction",
    "Verification",
    "ZodiacError",
    "iri",
    "open",
]
_HOMES = {
    "zodiacedge.answers": ("Answers", "Prepared"),
    "zodiacedge.engine.limits": ("Limits",),
    "zodiacedge.errors": ("Diagnostic", "ZodiacError"),
    "zodiacedge.knowledge": ("KnowledgeBase",),
    "zodiacedge.language.ast": ("Fact", "Predicate", "Rule"),
    "zodiacedge.maintenance.report": ("ChangeReport",),
    "zodiacedge.maintenance.subscribe": ("Notice", "Subscription"),
    "zodiacedge.maintenance.verify": ("Difference", "Verification"),
    "zodiacedge.opening": ("open",),
    "zodiacedge.store.entry": ("Entry",),
    "zodiacedge.terms": ("IRI", "BlankNode", "Literal", "iri"),
    "zodiacedge.transaction": ("Transaction",),
}

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
