"""The change that installs and removes packs: rules that come and go, owners, and what must hold afterwards.

Everything about packs is checked here; the rules themselves are checked as those of any change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zodiacedge.errors import Diagnostic, PackProblem, StratificationProblem, nearest
from zodiacedge.language.canonical import rule_key
from zodiacedge.language.safety import resolve
from zodiacedge.language.unify import pattern_of
from zodiacedge.language.vocabulary import LANGUAGE_VERSION
from zodiacedge.packs.delta import PackDelta
from zodiacedge.packs.manifest import outside_namespaces, windows_in
from zodiacedge.packs.owners import OwnerDelta, PacksDelta, moves, moves_for_people
from zodiacedge.packs.pack import id_of_key
from zodiacedge.packs.problems import does_not_fit, not_installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from zodiacedge.graph import HyperGraph
    from zodiacedge.language.ast import Rule
    from zodiacedge.language.checks import Host
    from zodiacedge.language.unify import Pattern
    from zodiacedge.packs.manifest import Manifest
    from zodiacedge.packs.owners import Installed, Packs
    from zodiacedge.packs.pack import Pack


class InForce(NamedTuple):
    """What is in force before a change of packs."""

    packs: Packs
    rules: Mapping[str, Rule]
    """By key."""
    labels: Mapping[str, str]
    """The key of the rule that has a label."""
    graph: HyperGraph
    host: Host


class PackChange(NamedTuple):
    """A change of packs as one of rules and owners."""

    added: tuple[Rule, ...]
    removed: tuple[Rule, ...]
    delta: PacksDelta
    after: Packs


def pack_change(
    now: InForce, install: Sequence[Pack | PackDelta], remove: Sequence[str], *, older: bool = False
) -> PackChange:
    """Return the change that installs and removes packs, or raise with all reasons against it.

    Args:
        now: What is in force.
        install: Packs to install, or deltas of packs that are installed.
        remove: The names of packs to remove.
        older: Whether a version may replace a later one.
    """
    packs = now.packs
    for name in remove:
        if name not in packs.installed:
            raise not_installed(name, nearest(name, tuple(packs.installed)))
    problems: list[Diagnostic] = []
    deltas = {name: OwnerDelta(removed=tuple(packs.installed[name].labels)) for name in remove}
    new: dict[str, Rule] = {}
    for pack in install:
        before = packs.installed.get(pack.name)
        problems += _unfit(pack.manifest, before, now.host, older=older)
        if moved := _owner_delta(pack, before):
            deltas[pack.name] = moved
            given = pack.added if isinstance(pack, PackDelta) else pack.rules
            new |= {number: rule for number, rule in given.items() if number in moved.added}
            problems += outside_namespaces(pack.manifest, given.values())
            problems += windows_in(pack.manifest, given.values())
    base = _base_delta(now, deltas, new)
    delta = PacksDelta(deltas, base)
    after = packs.changed(delta)
    problems += _missing(after)
    problems += _contested(now, after, deltas, new)
    if problems:
        raise PackProblem(problems)
    added, removed = _rules(now, after, deltas, new)
    return PackChange(added, removed, delta, after)


def naming_packs(problem: StratificationProblem, after: Packs) -> StratificationProblem:
    """Return the problem of packs that are not stratified together, with the packs of its cycles."""
    numbers = {id_of_key(key) for cycle in problem.cycles for key in cycle}
    involved = [pack for pack in after.installed.values() if any(n in pack.labels for n in numbers)]
    names = [f"the pack {pack}" for pack in involved]
    if any(not after.owners(number) for number in numbers):
        names.append("the base program")
    first, *others = names or ["the pack"]
    what = f"{first} and {' and '.join(others)} are" if others else f"{first} is"
    finding = Diagnostic(
        "P011",
        f"{what} not stratified together: nothing was changed",
        "each may be in force without the other; the cycle follows",
    )
    return StratificationProblem((finding, *problem.diagnostics), problem.cycles)


def way_back(now: InForce, pack: Pack | PackDelta) -> PackDelta | None:
    """Return the delta from a pack to the version in force before it; None if there is none."""
    before = now.packs.installed.get(pack.name)
    if before is None:
        return None
    labels = pack.labels(before.labels) if isinstance(pack, PackDelta) else pack.labels
    gone = {number: label for number, label in before.labels.items() if labels.get(number) != label}
    keys = _keys_of(now, gone)
    added = {number: replace(now.rules[keys[number]], label=label) for number, label in gone.items()}
    removed = tuple(sorted(number for number in labels if number not in before.labels))
    return PackDelta(pack.manifest.version, pack.manifest.digest, before.manifest, added, removed)


def message_of(before: Packs, after: Packs) -> str:
    """Return the message of a change of packs in the log."""
    return ", ".join(moves_for_people(moves(before, after)))


def _unfit(manifest: Manifest, before: Installed | None, host: Host, *, older: bool) -> Iterator[Diagnostic]:
    if manifest.language > LANGUAGE_VERSION:
        yield Diagnostic(
            "P007",
            f"the pack {manifest} is written in version {manifest.language} of the language, "
            f"and this is version {LANGUAGE_VERSION}",
            "use a newer version of zodiacedge",
        )
    for kind, names, known in (
        ("function", manifest.functions, host.functions),
        ("aggregate", manifest.aggregates, host.aggregates),
    ):
        for name in names:
            if known is not None and name not in known:
                yield Diagnostic(
                    "P006",
                    f"the pack {manifest} needs the {kind} func:{name}, which is not registered here",
                    f"register it with @kb.{kind}, or with --functions",
                )
    if before is None:
        return
    now = before.manifest
    if manifest.version < now.version and not older:
        yield Diagnostic(
            "P008",
            f"the pack {now} is installed, and {manifest.version} is an older version",
            "to go back, publish the old contents under a new version, or say older=True (--older)",
        )
    if manifest.version == now.version and manifest.to_dict() != now.to_dict():
        yield Diagnostic(
            "P008",
            f"the pack {now} is installed with other contents",
            "contents that differ need another version",
        )


def _owner_delta(pack: Pack | PackDelta, before: Installed | None) -> OwnerDelta:
    """Return what a pack gains and loses; nothing if it is installed already."""
    labels = before.labels if before else {}
    if isinstance(pack, PackDelta):
        if before is None or before.manifest.version != pack.base or before.manifest.digest != pack.before:
            there = f"{before} is" if before else "it is not"
            raise does_not_fit(pack.name, f"it starts at version {pack.base}, and {there} installed")
        pack.labels(labels)
        return OwnerDelta(pack.manifest, {n: rule.label for n, rule in pack.added.items()}, pack.removed)
    if before and before.manifest.to_dict() == pack.manifest.to_dict():
        return OwnerDelta()
    added = {n: rule.label for n, rule in pack.rules.items() if labels.get(n) != rule.label}
    return OwnerDelta(pack.manifest, added, tuple(sorted(n for n in labels if n not in pack.rules)))


def _base_delta(now: InForce, deltas: Mapping[str, OwnerDelta], new: Mapping[str, Rule]) -> OwnerDelta:
    """Return the rules of the base program that packs come to own as well, and those that only it keeps."""
    packs = now.packs
    present = {number: rule_key(resolve(rule)) for number, rule in new.items() if not packs.owners(number)}
    added = {number: now.rules[key].label for number, key in present.items() if key in now.rules}
    after = packs.changed(PacksDelta(deltas))
    gone = {number for delta in deltas.values() for number in delta.removed}
    removed = tuple(sorted(n for n in gone if n in packs.base and not after.owners(n)))
    return OwnerDelta(None, added, removed)


def _rules(
    now: InForce, after: Packs, deltas: Mapping[str, OwnerDelta], new: Mapping[str, Rule]
) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules that come and go; one that gets another label does both."""
    touched = dict.fromkeys(n for delta in deltas.values() for n in (*delta.added, *delta.removed))
    keys = _keys_of(now, (number for number in touched if number not in new))
    keys |= {n: key for n, rule in new.items() if (key := rule_key(resolve(rule))) in now.rules}
    added: list[Rule] = []
    removed: list[Rule] = []
    for number in touched:
        rule = now.rules[keys[number]] if number in keys else None
        if after.owners(number):
            label = after.label(number)
        elif number in now.packs.base:
            label = now.packs.base[number]
        else:
            removed += [rule] if rule else []
            continue
        if rule is None:
            added.append(replace(new[number], label=label))
        elif rule.label != label:
            removed.append(rule)
            added.append(replace(rule, label=label))
    return tuple(added), tuple(removed)


def _keys_of(now: InForce, numbers: Iterable[str]) -> dict[str, str]:
    """Return the keys of rules of packs, by id: labels lead to them."""
    return {number: now.labels[now.packs.label(number)] for number in numbers}


def _missing(after: Packs) -> Iterator[Diagnostic]:
    for pack in after.installed.values():
        for name, least in pack.manifest.requires.items():
            there = after.installed.get(name)
            if there and there.manifest.version >= least:
                continue
            state = f"{there} is installed" if there else "it is not installed"
            yield Diagnostic(
                "P005",
                f"the pack {pack} needs the pack {name}, version {least} or later, and {state}",
                "install both in one change, or remove both",
            )


def _contested(
    now: InForce, after: Packs, deltas: Mapping[str, OwnerDelta], new: Mapping[str, Rule]
) -> Iterator[Diagnostic]:
    """Yield an error for each predicate that two packs define, unless both share it."""
    definers: dict[str, set[str]] = {}
    heads: dict[Pattern, str] = {}
    for name, delta in deltas.items():
        for number in delta.added:
            head = new[number].head
            definers.setdefault(head.predicate.name, set()).add(name)
            heads[pattern_of(head)] = head.predicate.name
    for pattern, predicate in heads.items():
        for key in now.graph.rules.deriving(pattern):
            others = {pack.manifest.name for pack in after.owners(id_of_key(key))}
            definers[predicate].update(others)
    for predicate, names in sorted(definers.items()):
        rivals = sorted(names, key=lambda name: after.installed[name].manifest.may_share(predicate))
        if len(rivals) > 1 and not after.installed[rivals[0]].manifest.may_share(predicate):
            first, second = (after.installed[name] for name in rivals[:2])
            yield Diagnostic(
                "P004",
                f"the packs {first} and {second} both define {predicate}",
                "name it in shares of both, or give one of the two another predicate",
            )
