"""What statements do: queries print a table, changes are committed at once or, after `begin`, together.

    alarm(T)                      a query
    + fact .  + rule .            insert a fact, add a rule
    - fact .  - rule .  - label   delete a fact, remove a rule
    begin, preview, commit, abort a change of several statements
    .explain .why-not             why a fact is there, or is not
    .tick                         move the clock
    .help .rules .predicates .log .quit

A statement with an error changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zodiacedge.cli.explain.questions import naming_commands, show_text
from zodiacedge.cli.preview import show_samples
from zodiacedge.cli.show import PREDICATE_COLUMNS, predicate_rows, show_answers, show_problems
from zodiacedge.cli.store.log import show_log
from zodiacedge.errors import Diagnostic, UsageProblem, ZodiacError, counted, nearest
from zodiacedge.kb.preview.samples import preview_of
from zodiacedge.language.parser import read_program
from zodiacedge.language.printer import format_rule
from zodiacedge.language.vocabulary import DEFAULT_PREFIXES

if TYPE_CHECKING:
    from zodiacedge.cli.console import Console
    from zodiacedge.kb.knowledge_base import KnowledgeBase
    from zodiacedge.kb.transaction import Transaction
    from zodiacedge.language.ast import Program
    from zodiacedge.store.knowledge_base import StoredKnowledgeBase

_NAME = "<shell>"
_SAMPLES = 2
_HELP = {
    "alarm(T), near(T, X)": "a query: a body, ?- body . or ans(T) :- body .",
    "+ reading(wt1, 93) .": "insert a fact or add a rule",
    "- reading(wt1, 93) .": "delete a fact or remove a rule",
    "- hot": "remove the rule of a label",
    "@prefix ex: <…> .": "declare a prefix; a store keeps it with the next change",
    "begin [MESSAGE]": "collect the changes that follow, for one transaction",
    "preview": "print the report of the collected change, and samples with reasons; commit nothing",
    "commit": "commit it",
    "abort": "drop it",
    ".explain alarm(wt1)": "say why a fact is there, or the facts of a pattern",
    ".why-not alarm(wt2)": "say why a fact is not there",
    ".tick 2026-01-01T12:00:00Z": "move the clock; to the time of the system if none is given",
    ".rules": "list the rules in force",
    ".predicates": "count the facts of predicates",
    ".log": "list the versions of the store",
    ".help": "this list",
    ".quit": "end, as Ctrl-D does; also quit and exit",
}
_WITHOUT_DOT = {"exit": ".quit", "quit": ".quit", "help": ".help"}
WORDS = (
    "begin",
    "preview",
    "commit",
    "abort",
    ".tick",
    ".rules",
    ".predicates",
    ".log",
    ".help",
    ".quit",
    ".explain",
    ".why-not",
)


class Interpreter:
    """A knowledge base at a prompt."""

    def __init__(
        self, console: Console, kb: KnowledgeBase, stored: StoredKnowledgeBase | None = None
    ) -> None:
        """Begin without a collected change; `stored` is the knowledge base again, if it is one of a store."""
        self.kb = kb
        self._stored = stored
        self.failed = False
        """Whether a statement failed."""
        self.ended = False
        """Whether a statement asked for the end."""
        self._console = console
        self._change: Transaction | None = None
        self._collected = 0
        self._unkept: dict[str, str] = {}

    def execute(self, statement: str) -> None:
        """Carry out a statement and print its result, or its errors."""
        try:
            self._carry_out(statement.strip())
        except ZodiacError as problem:
            self._fail(problem)

    def close(self) -> None:
        """Report a change that was begun and not committed, and prefixes that the store does not keep."""
        if self._change is not None:
            self._console.note(
                f"the change was not committed: {counted(self._collected, 'statement')} dropped"
            )

        if self._unkept and self._stored and self._stored.store.writable:
            names = ", ".join(f"{prefix}:" for prefix in self._unkept)
            self._console.note(f"not kept, because no change followed: the prefix {names}")

    def _fail(self, problem: ZodiacError) -> None:
        self._console.findings(problem.diagnostics)
        self.failed = True

    def _carry_out(self, statement: str) -> None:
        statement = _WITHOUT_DOT.get(statement, statement)
        word, _, rest = statement.partition(" ")
        if statement[0] in "+-":
            self._collect(statement)
        elif declared := _prefixes(statement):
            self.kb.add_prefixes(declared.prefixes)
            self._unkept |= dict(declared.prefixes)
            if self._change is not None:
                self._change.add_program(declared)
            self._console.prefixes = {**DEFAULT_PREFIXES, **self.kb.prefixes}
        elif word in WORDS or word.startswith("."):
            self._command(word, rest.strip())
        else:
            self._query(statement)

    def _query(self, text: str) -> None:
        with self._console.progress():
            answers = self.kb.query(text, name=_NAME)
        show_problems(self._console, answers)
        show_answers(self._console, answers)

    def _collect(self, statement: str) -> None:
        change = self._change or self.kb.change()
        # A blank in place of the sign: columns in diagnostics are those of the line.
        text = f" {statement[1:]}"
        if statement[0] == "+":
            change.add_rules(text, _NAME)
        else:
            change.remove_rules(text, _NAME)
        if self._change is None:
            self._commit(change)
        else:
            self._collected += 1

    def _commit(self, change: Transaction) -> None:
        try:
            with self._console.progress(), change:
                pass
        except KeyboardInterrupt:
            if change.is_committed:
                self._console.note("the change was committed before the interruption")
            raise
        self._unkept.clear()
        self._console.text(change.report.summary())

    def _commit_begun(self) -> None:
        change = self._begun()
        try:
            self._commit(change)
        except ZodiacError as problem:
            self._fail(problem)
            if not change.is_committed:
                self._console.note("the change is still open: correct it, or abort")
        finally:
            if change.is_committed:
                self._change = None

    def _command(self, word: str, rest: str) -> None:
        match word:
            case "begin":
                if self._change is not None:
                    raise _usage("a change has begun already", "commit or abort it first")
                self._change, self._collected = self.kb.change(rest), 0
            case "preview":
                with self._console.progress():
                    report = self._begun().dry_run()
                    preview = preview_of(self.kb, report, _SAMPLES)
                self._console.text(report.summary())
                show_samples(self._console, preview)
            case "commit":
                self._commit_begun()
            case "abort":
                self._begun()
                self._change = None
            case ".explain" | ".why-not":
                self._explain(rest, there=word == ".explain")
            case ".tick":
                self._tick(rest)
            case ".rules":
                for rule in self.kb.rules:
                    self._console.text(format_rule(rule))
            case ".predicates":
                self._console.table(PREDICATE_COLUMNS, predicate_rows(self.kb))
            case ".log":
                self._log()
            case ".help":
                self._console.table(("statement", "meaning"), list(_HELP.items()))
            case ".quit":
                self.ended = True
            case _:
                near = nearest(word, WORDS)
                hint = f"did you mean {near}?" if near else ".help lists all statements"
                raise _usage(f"there is no command {word}", hint)

    def _tick(self, moment: str) -> None:
        change = self._change or self.kb.change()
        change.tick(moment or None)
        if self._change is None:
            self._commit(change)
        else:
            self._collected += 1

    def _explain(self, fact: str, *, there: bool) -> None:
        if not fact:
            word = ".explain" if there else ".why-not"
            raise _usage(f"{word} what?", f"name a fact: {word} alarm(wt1)")
        with self._console.progress("explaining"), naming_commands(".explain", ".why-not"):
            answer = self.kb.explain(fact) if there else self.kb.why_not(fact)
        show_text(self._console, answer)

    def _begun(self) -> Transaction:
        if self._change is None:
            raise _usage("no change has begun", "begin collects the changes that follow")
        return self._change

    def _log(self) -> None:
        if not self._stored:
            raise _usage("versions are kept in stores only", "make a store: zodiac init")
        show_log(self._console, self._stored.log())


def _prefixes(statement: str) -> Program | None:
    """Return a statement that declares prefixes; before a rule or an atom they are those of a query."""
    if not statement.startswith("@"):
        return None
    program, findings = read_program(statement, _NAME)
    return None if findings or program.rules or program.facts else program


def _usage(message: str, note: str) -> UsageProblem:
    return UsageProblem(Diagnostic("U029", message, note))
