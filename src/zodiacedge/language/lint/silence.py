"""Comments that silence warnings: `# lint: ignore W020` for a rule, `# lint: ignore-file W020` for its text.

The comment for a rule is on a line of the rule, or among the comment lines directly above it. The one for a
text may be on any line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING

from zodiacedge.language.scanner import comments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zodiacedge.errors import Diagnostic, Source, Span
    from zodiacedge.language.ast import Rule

_DIRECTIVE = re.compile(r"(?:#|//)[ \t]*lint:[ \t]*(ignore(?:-file)?)[ \t]+([^\n]*)")
_CODE = re.compile(r"\b[A-Z][0-9]{3}\b")
_COMMENT = ("#", "//")


def audible(findings: Iterable[Diagnostic], rules: Iterable[Rule]) -> list[Diagnostic]:
    """Return the findings without warnings that a comment in the texts of these rules silences."""
    kept = list(findings)
    sources = {id(d.span.source): d.span.source for d in kept if d.span and d.severity != "error"}
    texts = {key: _Text(source) for key, source in sources.items() if _DIRECTIVE.search(source.text)}
    if not texts:
        return kept
    for rule in rules:
        if rule.span and id(rule.span.source) in texts:
            texts[id(rule.span.source)].spans.append(rule.span)
    return [
        d
        for d in kept
        if not d.span
        or d.severity == "error"
        or id(d.span.source) not in texts
        or d.code not in texts[id(d.span.source)].ignored(d.span)
    ]


class _Text:
    # A text with directives, and the spans of its rules.

    def __init__(self, source: Source) -> None:
        self.spans: list[Span] = []
        self._source = source
        self._everywhere = _codes(source.text, "ignore-file")
        self._ordered = cache(lambda: sorted(self.spans, key=lambda span: span.start))

    def ignored(self, place: Span) -> set[str]:
        spans = self._ordered()
        number = bisect_right(spans, place.start, key=lambda span: span.start) - 1
        span = spans[number] if number >= 0 and place.start < spans[number].end else place
        first, last = (self._source.position(offset)[0] for offset in (span.start, span.end - 1))
        while self._source.line(first - 1).lstrip().startswith(_COMMENT):
            first -= 1
        lines = "\n".join(map(self._source.line, range(first, last + 1)))
        return self._everywhere | _codes(lines, "ignore")


def _codes(text: str, word: str) -> set[str]:
    found = (_DIRECTIVE.search(comment.text) for comment in comments(text))
    directives = (match[2] for match in found if match and match[1] == word)
    return {code for codes in directives for code in _CODE.findall(codes)}
