"""Random changes of packs and of the base program, compared with a model of owners and with evaluation."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from packs.making import made
from zodiacedge.packs.delta import delta_between
from zodiacedge.packs.pack import rule_id

if TYPE_CHECKING:
    from pathlib import Path

    from zodiacedge.packs.pack import Pack

# Some rules negate, some feed each other, one is a fact of a pack.
BODIES = (
    "a(X) :- e(X, Y)",
    "a(X) :- f(X)",
    "b(X) :- a(X), not c(X)",
    "c(X) :- e(Y, X), f(Y)",
    "t(X, Y) :- e(X, Y)",
    "t(X, Z) :- t(X, Y), e(Y, Z)",
    "d(X) :- t(X, X)",
    "f(X) :- g(X), X > 2",
    "g(4) :- 1 = 1",
)
FACTS = "e(1, 2) . e(2, 3) . e(3, 1) . f(1) . g(3) . g(1) ."
NAMES = ("one", "two", "three")
SHARES = 'shares = ["a", "b", "c", "d", "f", "g", "t"]'
EXAMPLES = int(os.environ.get("ZODIAC_EXAMPLES", "300")) // 10
SEED = int(os.environ.get("ZODIAC_SEED", "0"))


class Model:
    """Who owns what: rules of the base program by number, with labels, and of packs likewise."""

    def __init__(self) -> None:
        self.base: dict[int, str] = {}
        self.packs: dict[str, tuple[int, dict[int, str]]] = {}

    def copy(self) -> Model:
        other = Model()
        other.base, other.packs = dict(self.base), dict(self.packs)
        return other

    def rules(self) -> dict[int, str]:
        """Return the rules in force with the labels that they are shown with."""
        shown: dict[int, str] = {}
        for name, (_, own) in sorted(self.packs.items(), reverse=True):
            shown |= {number: f"{name}/{label}" for number, label in own.items()}
        return {**shown, **{n: label or shown.get(n, "") for n, label in self.base.items()}}


class Run:
    """A knowledge base and its model, changed side by side."""

    def __init__(self, kb: ze.KnowledgeBase, dice: Random) -> None:
        self.kb, self.dice, self.model = kb, dice, Model()
        self.version = dict.fromkeys(NAMES, 0)
        self.made: dict[str, Pack] = {}
        self.history = {kb.version: self.model.copy()}

    def step(self) -> None:
        kinds = (self.install, self.install, self.upgrade, self.remove, self.add, self.drop, self.sync)
        self.dice.choice(kinds)()
        self.history[self.kb.version] = self.model.copy()

    def _some(self) -> dict[int, str]:
        numbers = self.dice.sample(range(len(BODIES)), self.dice.randint(1, 5))
        # The labels of two versions may differ.
        return {n: f"{self.dice.choice('xy')}{n}" for n in numbers}

    def _pack(self, name: str) -> tuple[Pack, dict[int, str]]:
        rules = self._some()
        self.version[name] += 1
        text = " .\n".join(f"{label}: {BODIES[n]}" for n, label in rules.items())
        return made(f"{text} .", self.version[name], name, SHARES), rules

    def install(self) -> None:
        name = self.dice.choice(NAMES)
        pack, rules = self._pack(name)
        self.kb.install(pack)
        self.made[name] = pack
        self.model.packs[name] = pack.version, rules

    def upgrade(self) -> None:
        if not self.model.packs:
            return
        name = self.dice.choice(sorted(self.model.packs))
        pack, rules = self._pack(name)
        if self.made[name].version == self.model.packs[name][0]:
            self.kb.install(delta_between(self.made[name], pack))
        else:
            self.kb.install(pack)
        self.made[name] = pack
        self.model.packs[name] = pack.version, rules

    def remove(self) -> None:
        if self.model.packs:
            name = self.dice.choice(sorted(self.model.packs))
            self.kb.remove_pack(name)
            del self.model.packs[name]

    def add(self) -> None:
        number = self.dice.randrange(len(BODIES))
        label = f"own{number}" if self.dice.random() < 0.7 else ""
        with self.kb.change() as change:
            change.add_rules(f"{label + ': ' if label else ''}{BODIES[number]} .")
        self.model.base.setdefault(number, label)

    def drop(self) -> None:
        if self.model.base:
            number = self.dice.choice(sorted(self.model.base))
            with self.kb.change() as change:
                change.remove_rules(f"{BODIES[number]} .")
            del self.model.base[number]

    def sync(self) -> None:
        rules = {n: f"own{n}" for n in self._some()}
        with self.kb.change() as change:
            change.sync_rules(" .\n".join(f"{label}: {BODIES[n]}" for n, label in rules.items()) + " .")
        self.model.base = rules

    def rollback(self) -> None:
        version = self.dice.choice(sorted(self.history))
        assert isinstance(self.kb, ze.StoredKnowledgeBase)
        self.kb.rollback(version)
        self.model = self.history[version].copy()
        self.history[self.kb.version] = self.model.copy()

    def check(self) -> None:
        kb, model = self.kb, self.model
        expected = model.rules()
        texts = {rule_id(rule): rule.label for rule in kb.rules}
        assert texts == {ID[number]: label for number, label in expected.items()}
        assert {m.name: m.version for m in kb.packs()} == {n: v for n, (v, _) in model.packs.items()}
        # An entry stands for a rule that both own, and for no other.
        shared = {n for _, own in model.packs.values() for n in own} & model.base.keys()
        assert dict(kb.installed.base) == {ID[n]: model.base[n] for n in shared}
        scratch = ze.open(engine="reference")
        with scratch.change() as change:
            change.add_rules(" .\n".join([*(BODIES[n] for n in expected), FACTS.removesuffix(" .")]) + " .")
        assert kb.facts() == scratch.facts()


ID = {n: next(iter(made(f"{body} .").rules)) for n, body in enumerate(BODIES)}


@pytest.mark.parametrize("engine", ["reference", "embedded"])
@pytest.mark.parametrize("seed", range(4))
def test_owners_are_those_of_the_model(engine: str, seed: int) -> None:
    session(engine, seed)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["reference", "embedded"])
def test_owners_are_those_of_the_model_for_long(engine: str) -> None:
    for seed in range(SEED, SEED + EXAMPLES):
        session(engine, seed)


def session(engine: str, seed: int) -> None:
    kb = ze.open(engine=engine)
    with kb.change() as change:
        change.add_facts(FACTS)
    run = Run(kb, Random(seed))
    for _ in range(25):
        run.step()
        run.check()


@pytest.mark.parametrize("seed", range(3))
def test_a_store_has_the_owners_of_each_version(tmp_path: Path, seed: int) -> None:
    stored(tmp_path, seed)


@pytest.mark.soak
def test_a_store_has_the_owners_of_each_version_for_long(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + EXAMPLES):
        stored(tmp_path / str(seed), seed)


def stored(folder: Path, seed: int) -> None:
    dice = Random(seed)
    kb = ze.open(folder / "farm", create=True)
    with kb.change() as change:
        change.add_facts(FACTS)
    run = Run(kb, dice)
    for _ in range(25):
        run.rollback() if dice.random() < 0.2 else run.step()
        run.check()
        if dice.random() < 0.2:
            # Of half of these, the log is flushed into the table before.
            kb.flush() if dice.random() < 0.5 else None
            with ze.open(folder / "farm", read_only=True) as reader:
                assert (reader.installed, set(reader.rules)) == (kb.installed, set(kb.rules))
                assert reader.facts() == kb.facts()
    kb.close()
    with ze.open(folder / "farm") as again:
        run.kb = again
        run.check()
        for version in sorted(run.history)[:: max(1, len(run.history) // 5)]:
            with again.at(version) as earlier:
                run.kb, run.model = earlier, run.history[version]
                run.check()
