"""What the tests of explanations share: every proof is checked, and heights are found by brute force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explain.checker import Facts, problems
from strategies import keyed
from zodiacedge.engine.api import Settings
from zodiacedge.engine.factset import FactSet
from zodiacedge.engine.reference import ReferenceMaterialisation
from zodiacedge.explain.budget import Budget
from zodiacedge.language.ast import Atom, Fact, Query, Variable, variables
from zodiacedge.language.safety import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zodiacedge.engine.registry import Registry
    from zodiacedge.explain.proof import Proof
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.language.ast import Rule
    from zodiacedge.terms import Term


def patience() -> Budget:
    """Return a budget that a busy machine does not end."""
    return Budget(seconds=600)


def checked(kb: KnowledgeBase, proof: Proof) -> Proof:
    """Return a proof that the checker finds nothing wrong with."""
    facts = Facts.of(kb.facts(), kb.explicit, kb.settings.registry)
    assert list(problems(proof, keyed(kb.rules), facts)) == []
    return proof


def least_heights(
    rules: Iterable[Rule], visible: Iterable[Fact], explicit: Iterable[Fact], registry: Registry
) -> dict[Fact, int]:
    """Return the least height of every fact, from all instances of all rules."""
    state = ReferenceMaterialisation(facts=FactSet(visible))
    settings = Settings(registry=registry)
    instances: list[tuple[Fact, list[Fact]]] = []
    for rule in keyed(rules).values():
        bound = analyse(rule.body).bound
        # Values of `_` take no part in the head, but say which facts an instance needs.
        names = tuple(dict.fromkeys(v for c in rule.body for v in variables(c) if v in bound))
        for row in state.answer(Query(names, rule.body), settings).rows:
            values = dict(zip(names, row, strict=True))
            atoms = [c for c in rule.body if isinstance(c, Atom)]
            head, *premises = (_filled(atom, values) for atom in (rule.head, *atoms))
            instances.append((head, premises))
    heights = dict.fromkeys(explicit, 0)
    smaller = True
    while smaller:
        smaller = False
        for head, premises in instances:
            if all(premise in heights for premise in premises):
                height = 1 + max((heights[premise] for premise in premises), default=0)
                if height < heights.get(head, height + 1):
                    heights[head] = height
                    smaller = True
    return heights


def _filled(atom: Atom, values: Mapping[Variable, Term]) -> Fact:
    return Fact(atom.relation, tuple(values[a] if isinstance(a, Variable) else a for a in atom.args))
