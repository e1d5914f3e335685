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

from zodiacedge.engine.limits import Limits
from zodiacedge.errors import Diagnostic, ZodiacError
from zodiacedge.knowledge import Answers, KnowledgeBase, Transaction
from zodiacedge.knowledge import open_kb as open  # noqa: A004 - ze.open reads as it should
from zodiacedge.language.ast import Fact, Predicate, Rule
from zodiacedge.maintenance.report import ChangeReport
from zodiacedge.terms import IRI, BlankNode, Literal, iri

__version__ = "0.1.0"
__all__ = [
    "IRI",
    "Answers",
    "BlankNode",
    "ChangeReport",
    "Diagnostic",
    "Fact",
    "KnowledgeBase",
    "Limits",
    "Literal",
    "Predicate",
    "Rule",
    "Transaction",
    "ZodiacError",
    "iri",
    "open",
]
