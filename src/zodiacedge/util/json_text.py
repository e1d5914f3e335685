"""Values as indented JSON, with texts inside that are JSON already."""

from __future__ import annotations

import json


class RawJson(str):
    """A text that is JSON already, such as a number with its own digits."""

    __slots__ = ()


def json_text(value: object, indent: str = "\n") -> str:
    """Return a value as indented JSON; `RawJson` is inserted as it is."""
    inner = f"{indent} "
    match value:
        case RawJson():
            return str(value)
        case dict() if value:
            items = (
                f"{json.dumps(key, ensure_ascii=False)}: {json_text(v, inner)}" for key, v in value.items()
            )
            return f"{{{inner}{f',{inner}'.join(items)}{indent}}}"
        case list() | tuple() if value:
            return f"[{inner}{f',{inner}'.join(json_text(v, inner) for v in value)}{indent}]"
        case _:
            return json.dumps(value, ensure_ascii=False)
