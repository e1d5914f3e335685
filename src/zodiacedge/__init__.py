"""ZodiacEdge: a Datalog engine whose rules are live.

Rules and facts come and go while it runs, and their consequences are kept exact::

    rule text ─language→ syntax tree ─graph→ hyper rule dependency graph ─plan→ join orders
    facts ─────io──────→ batches ─────engine→ materialisation ─kb→ changes · queries · reports
                                                               ─store→ versions on disk

The folders are the stages, in reading order; `docs/architecture.md` tells more:

    errors       the exception tree; a diagnostic is data
    extras       optional libraries
    util         data structures that know nothing of Datalog
    terms        IRIs, blank nodes and literals
    language     rule text to checked syntax tree
    graph        the hyper rule dependency graph
    plan         join orders
    io           facts in and out of files
    packs        sets of rules that are installed, upgraded and removed as a whole
    engine       reference, embedded and Spark: evaluation and incremental maintenance
    explain      why a fact is there, why it is not, since when
    kb           the knowledge base: changes, queries, reports
    store        a knowledge base that outlives its process
    opening      `ze.open`
    one_step     `ze.materialize`
    datasource   the data source `zodiac` of Spark
    pipeline     streams into a store, slices out of it
    fleet        packs for many devices: trust, hub, agent
    cli          the command `zodiac`
    demo         the wind farm

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
    from zodiacedge.cli.sessions.format import findings as session_findings
    from zodiacedge.cli.sessions.format import parse_session
    from zodiacedge.cli.sessions.format import shortfalls as session_shortfalls
    from zodiacedge.datasource.source import DataSource
    from zodiacedge.engine.limits import Limits
    from zodiacedge.engine.spark.cluster.session import package_archive
    from zodiacedge.engine.spark.storage.workspace import Options as SparkOptions
    from zodiacedge.errors import Diagnostic, StoreBusy, ZodiacError
    from zodiacedge.explain.budget import Budget
    from zodiacedge.explain.history import History
    from zodiacedge.explain.missing import WhyNot
    from zodiacedge.explain.proof import Proof
    from zodiacedge.io.read import read as read_facts
    from zodiacedge.kb.answers import Answers
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.query import Prepared
    from zodiacedge.kb.report import ChangeReport
    from zodiacedge.kb.subscribe import Notice, Subscription
    from zodiacedge.kb.transaction import Transaction
    from zodiacedge.kb.verify import Difference, Verification
    from zodiacedge.language.ast import Fact, Predicate, Rule
    from zodiacedge.one_step import Materialized, materialize
    from zodiacedge.opening import open_kb as open  # noqa: A004 - ze.open reads as it should
    from zodiacedge.pipeline.publish_slices import Device
    from zodiacedge.pipeline.publish_slices import publish as publish_slices
    from zodiacedge.pipeline.stream import FileSelection, Stream
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase
    from zodiacedge.store.log.record import Entry
    from zodiacedge.terms import IRI, BlankNode, Literal, iri
    from zodiacedge.terms import given_literal as literal

__version__ = "0.1.0"
__all__ = [
    "IRI",
    "Answers",
    "BlankNode",
    "Budget",
    "ChangeReport",
    "DataSource",
    "Device",
    "Diagnostic",
    "Difference",
    "Entry",
    "Fact",
    "FileSelection",
    "History",
    "KnowledgeBase",
    "Limits",
    "Literal",
    "Materialized",
    "Notice",
    "Predicate",
    "Prepared",
    "Proof",
    "Rule",
    "SparkOptions",
    "StoreBusy",
    "StoredKnowledgeBase",
    "Stream",
    "Subscription",
    "Transaction",
    "Verification",
    "WhyNot",
    "ZodiacError",
    "iri",
    "literal",
    "materialize",
    "open",
    "package_archive",
    "parse_session",
    "publish_slices",
    "read_facts",
    "session_findings",
    "session_shortfalls",
]
_HOMES = {
    "zodiacedge.cli.sessions.format": ("parse_session", "session_findings", "session_shortfalls"),
    "zodiacedge.datasource.source": ("DataSource",),
    "zodiacedge.engine.spark.cluster.session": ("package_archive",),
    "zodiacedge.kb.answers": ("Answers",),
    "zodiacedge.kb.query": ("Prepared",),
    "zodiacedge.engine.limits": ("Limits",),
    "zodiacedge.engine.spark.storage.workspace": ("SparkOptions",),
    "zodiacedge.explain.budget": ("Budget",),
    "zodiacedge.explain.history": ("History",),
    "zodiacedge.explain.missing": ("WhyNot",),
    "zodiacedge.explain.proof": ("Proof",),
    "zodiacedge.errors": ("Diagnostic", "StoreBusy", "ZodiacError"),
    "zodiacedge.io.read": ("read_facts",),
    "zodiacedge.kb.knowledge_base": ("KnowledgeBase",),
    "zodiacedge.language.ast": ("Fact", "Predicate", "Rule"),
    "zodiacedge.kb.report": ("ChangeReport",),
    "zodiacedge.kb.subscribe": ("Notice", "Subscription"),
    "zodiacedge.kb.verify": ("Difference", "Verification"),
    "zodiacedge.one_step": ("Materialized", "materialize"),
    "zodiacedge.opening": ("open",),
    "zodiacedge.pipeline.publish_slices": ("Device", "publish_slices"),
    "zodiacedge.pipeline.stream": ("FileSelection", "Stream"),
    "zodiacedge.store.knowledge_base": ("StoredKnowledgeBase",),
    "zodiacedge.store.log.record": ("Entry",),
    "zodiacedge.terms": ("IRI", "BlankNode", "Literal", "iri", "literal"),
    "zodiacedge.kb.transaction": ("Transaction",),
}

_NAMES_AT_HOME = {
    "literal": "given_literal",
    "SparkOptions": "Options",
    "open": "open_kb",
    "publish_slices": "publish",
    "read_facts": "read",
    "session_findings": "findings",
    "session_shortfalls": "shortfalls",
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
        found = getattr(module, _NAMES_AT_HOME.get(name, name))
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
