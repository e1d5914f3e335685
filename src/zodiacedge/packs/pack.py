"""A pack as a value: a manifest, and rules by id.

The id of a rule is the hash of its canonical form, so it is the same however the rule is written. A fact of a
pack is a rule without premises: it has an id and owners as any rule has, and is never mistaken for a fact
that somebody stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic, PackProblem
from zodiacedge.language.ast import ALWAYS, Call, Rule, conjuncts, operands
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from zodiacedge.language.ast import Atom
    from zodiacedge.packs.manifest import Manifest

# Each is a hyper-node of its own: tables of facts are loaded, not packed.
MOST_FACTS = 1_000
# The digits of an id that make a label of an unlabelled rule.
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Pack:
    """A named, versioned set of rules."""

    manifest: Manifest
    rules: Mapping[str, Rule]
    """The rules by id; their labels are those within the pack."""

    @property
    def name(self) -> str:
        """The name."""
        return self.manifest.name

    @property
    def version(self) -> int:
        """The version."""
        return self.manifest.version

    @property
    def labels(self) -> dict[str, str]:
        """The labels within the pack, by id."""
        return {number: rule.label for number, rule in self.rules.items()}

    def __str__(self) -> str:
        """Return the name and the version."""
        return str(self.manifest)


def pack_of(manifest: Manifest, rules: Iterable[Rule], facts: Iterable[Atom] = ()) -> Pack:
    """Make a pack of rules and facts: rules without a label get one, and the digest is computed."""
    stated = [Rule(fact, (ALWAYS,), span=fact.span) for fact in facts]
    if len(stated) > MOST_FACTS:
        raise PackProblem(
            Diagnostic(
                "P014",
                f"the pack {manifest.name} states {len(stated):,} facts, and may state {MOST_FACTS:,}",
                "load tables of facts as files: zodiac apply --add-facts",
            )
        )
    by_id: dict[str, Rule] = {}
    for rule in (*rules, *stated):
        by_id.setdefault(rule_id(rule), rule)
    labelled = dict(_labelled(by_id))
    ordered = dict(sorted(labelled.items(), key=lambda item: (item[1].label, item[0])))
    return Pack(replace(manifest, digest=digest_of({n: r.label for n, r in ordered.items()})), ordered)


def rule_id(rule: Rule) -> str:
    """Return the id of a rule."""
    return id_of_key(rule_key(resolve(rule)))


def id_of_key(key: str) -> str:
    """Return the id of the rule that has a key."""
    return sha256(key.encode()).hexdigest()


def digest_of(labels: Mapping[str, str]) -> str:
    """Return the digest of a set of rules, given as labels by id; it does not depend on their order."""
    return sha256(
        "\n".join(sorted(f"{number} {label}" for number, label in labels.items())).encode()
    ).hexdigest()


def shown_label(pack: str, label: str) -> str:
    """Return the label of a rule of a pack in a knowledge base."""
    return f"{pack}/{label}"


def called_by(rules: Iterable[Rule]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the registered functions and aggregates that rules call."""
    functions: set[str] = set()
    aggregates: set[str] = set()
    for rule in rules:
        for operand in (o for c in conjuncts(rule.body) for o in operands(c)):
            if isinstance(operand, Call) and operand.registered:
                functions.add(operand.function)
        if rule.aggregate:
            aggregates.update(fold.op for fold in rule.aggregate.folds if fold.registered)
    return tuple(sorted(functions)), tuple(sorted(aggregates))


def _labelled(rules: Mapping[str, Rule]) -> Iterator[tuple[str, Rule]]:
    """Yield the rules with labels; one that has none gets a label that says whether it states a fact."""
    taken = {rule.label for rule in rules.values()}
    for number, rule in rules.items():
        if rule.label:
            yield number, rule
            continue
        letter, digits = "f" if rule.states_fact else "r", _DIGITS
        while (label := f"{letter}{number[:digits]}") in taken:
            digits += 1
        taken.add(label)
        yield number, replace(rule, label=label)
