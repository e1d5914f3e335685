"""The prompt on a terminal: line editing, history over sessions, and completion at Tab.

Editing is that of Python's readline, where the system has it. History is a file in the user's state folder
(`$XDG_STATE_HOME`, `~/.local/state` if that is not set); a file that cannot be read or written is ignored.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from zodiacedge.cli.shell.interpreter import WORDS
from zodiacedge.language.ast import body_atoms
from zodiacedge.language.printer import format_predicate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zodiacedge.kb.knowledge_base import KnowledgeBase

_PROMPT, _MORE = "zodiac> ", "   ...> "
_LONGEST = 10_000


def line_of_pipe(*, more: bool) -> str | None:
    """Return the next line of standard input; None at its end."""
    del more
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


def line_of_terminal(*, more: bool) -> str | None:
    """Ask for a line; None at Ctrl-D."""
    try:
        return input(_MORE if more else _PROMPT)
    except EOFError:
        sys.stdout.write("\n")
        return None


@contextmanager
def editing(kb: KnowledgeBase) -> Iterator[None]:
    """Edit lines with history and completion in the block, where the system has readline."""
    try:
        import readline  # noqa: PLC0415 - not on every system, and only for a terminal
    except ImportError:
        yield
        return
    history = history_file()
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_LONGEST)
    completion = Completion(kb)
    readline.set_completer(lambda word, n: completion.candidate(readline.get_line_buffer(), word, n))
    readline.set_completer_delims(" \t\n,()")
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


def history_file() -> Path:
    """Return the file of the lines that were typed."""
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder) / "zodiacedge" / "shell_history"


class Completion:
    """The words that a Tab completes: predicates, labels of rules after `-`, words of the shell."""

    def __init__(self, kb: KnowledgeBase) -> None:
        """Complete words of a knowledge base, whatever version it reaches."""
        self._kb = kb
        self._version = -1
        self._predicates: tuple[str, ...] = ()

    def candidate(self, line: str, word: str, number: int) -> str | None:
        """Return a completion of the word at the end of a line, by number; None after the last."""
        found = self.candidates(line, word)
        return found[number] if number < len(found) else None

    def candidates(self, line: str, word: str) -> list[str]:
        """Return the completions of a word, in order."""
        known = list(self._known())
        if line.strip() == word:
            known += WORDS
        if line.startswith("-"):
            known += [rule.label for rule in self._kb.rules if rule.label]
        return sorted({name for name in known if name.startswith(word)})

    def _known(self) -> tuple[str, ...]:
        kb = self._kb
        if kb.version != self._version:
            atoms = [atom for rule in kb.rules for atom in (rule.head, *body_atoms(rule.body))]
            names = {format_predicate(atom.predicate.name, kb.prefixes) for atom in atoms}
            # Names with an arity, p/2, are in rules too, or rare.
            names |= {name for name in kb.explicit_counts(prefixed=True) if "/" not in name or ":" in name}
            self._version, self._predicates = kb.version, tuple(sorted(names))
        return self._predicates
