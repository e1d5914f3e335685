"""Values of documents that came from outside, JSON or TOML: each is what its reader expects, or an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Fields:
    """The fields of a document; all methods raise ValueError with what is wrong."""

    def __init__(self, document: object, where: str = "the document") -> None:
        """Take a document, whatever it is."""
        if not isinstance(document, dict):
            raise ValueError(f"{where} has no fields")  # noqa: TRY004 - it is the value of a file
        self._document: dict[object, object] = document
        self._where = where

    def only(self, names: Collection[str]) -> None:
        """Raise if there are fields of other names."""
        for name in self._document:
            if name not in names:
                raise ValueError(f"{self._where} has a field {name!r}, which means nothing")

    def __contains__(self, name: str) -> bool:
        """Return whether there is a field."""
        return name in self._document

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._value(name, default)
        if isinstance(value, str):
            return value
        raise self._wrong(name, "a text")

    def number(self, name: str, default: int | None = None) -> int:
        """Return a number that is not negative."""
        return self._number(name, self._value(name, default))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty if it is not there."""
        value = self._value(name, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self._wrong(name, "a list of texts")

    def documents(self, name: str) -> tuple[Fields, ...]:
        """Return a list of documents, empty if it is not there."""
        value = self._value(name, [])
        if isinstance(value, list):
            return tuple(Fields(item, f"{name} {number}") for number, item in enumerate(value, 1))
        raise self._wrong(name, "a list")

    def inner(self, name: str) -> Fields:
        """Return the document in a field, empty if it is not there."""
        return Fields(self._value(name, {}), name)

    def named_texts(self) -> dict[str, str]:
        """Return all fields, each a text."""
        return {str(name): self.text(str(name)) for name in self._document}

    def named_numbers(self) -> dict[str, int]:
        """Return all fields, each a number that is not negative."""
        return {str(name): self.number(str(name)) for name in self._document}

    def named_documents(self) -> dict[str, Fields]:
        """Return all fields, each a document."""
        return {str(name): self.inner(str(name)) for name in self._document}

    def digest(self, name: str) -> str:
        """Return a digest: 64 hexadecimal digits."""
        value = self.text(name)
        if _DIGEST.fullmatch(value):
            return value
        raise self._wrong(name, "a digest")

    def digests(self, name: str) -> tuple[str, ...]:
        """Return a list of digests, empty if it is not there."""
        values = self.texts(name)
        if all(map(_DIGEST.fullmatch, values)):
            return values
        raise self._wrong(name, "a list of digests")

    def _value(self, name: str, default: object) -> object:
        value = self._document.get(name, default)
        if value is None:
            raise ValueError(f"{self._where} lacks {name}")
        return value

    def _number(self, name: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise self._wrong(name, "a whole number from 0")

    def _wrong(self, name: str, kind: str) -> ValueError:
        return ValueError(f"{name} of {self._where} is not {kind}")


def document_of(pairs: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that say something, in their order."""
    return {name: value for name, value in pairs.items() if value not in ((), [], {}, "")}
