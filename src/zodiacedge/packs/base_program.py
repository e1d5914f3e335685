"""What changes of the base program may do to the rules of packs.

A change that names no pack changes the base program. Of a rule that a pack owns it can make and unmake the
base program an owner; the rule itself comes and goes with its last owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.errors import Diagnostic
from zodiacedge.packs.owners import OwnerDelta, PacksDelta
from zodiacedge.packs.pack import id_of_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from zodiacedge.language.ast import Rule
    from zodiacedge.packs.owners import Packs


class BaseChange:
    """A change of the base program, as far as it concerns the rules of packs."""

    def __init__(self, packs: Packs, rules: Mapping[str, Rule]) -> None:
        """Begin with the packs and the rules in force."""
        self._packs = packs
        self._rules = rules
        # Keys of rules, and their new labels in the base program, by id.
        self._stated: dict[str, tuple[str, str]] = {}
        self._released: dict[str, str] = {}

    def concerns(self, key: str) -> bool:
        """Return whether a pack owns the rule of a key."""
        return bool(self._packs) and bool(self._packs.owners(id_of_key(key)))

    def release(self, key: str) -> Iterator[Diagnostic]:
        """Take the base program from the owners of a rule; yield an error if it is none of them."""
        number = id_of_key(key)
        if number in self._packs.base:
            self._released[number] = key
            return
        packs = self._packs.owners(number)
        names = " and ".join(str(pack) for pack in packs)
        yield Diagnostic(
            "P012",
            f"the rule {self._rules[key].label} belongs to the pack {names}",
            "remove the pack, or install a version of it without the rule",
        )

    def release_shared(self, key: str) -> None:
        """Take the base program from the owners of a rule, if it is one."""
        number = id_of_key(key)
        if number in self._packs.base:
            self._released[number] = key

    def state(self, key: str, rule: Rule) -> bool:
        """Make the base program an owner of a rule of a pack; return whether that changes anything."""
        number = id_of_key(key)
        owned = number in self._packs.base and number not in self._released
        if owned or (number not in self._packs.base and rule.label == self._rules[key].label):
            return False
        self._stated[number] = key, rule.label
        return True

    def delta(self) -> PacksDelta:
        """Return the change of owners."""
        removed = tuple(sorted(self._released.keys() - self._stated.keys()))
        added = {n: label for n, (_, label) in self._stated.items() if self._packs.base.get(n) != label}
        return PacksDelta({}, OwnerDelta(None, added, removed))

    def relabelled(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of the rules that are shown with another label afterwards, with that label."""
        after = self._packs.changed(self.delta())
        for number, key in {**self._released, **{n: key for n, (key, _) in self._stated.items()}}.items():
            label = after.label(number)
            if label != self._rules[key].label:
                yield key, label
