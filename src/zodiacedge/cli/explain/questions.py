"""Questions of commands about facts, and the forms in which they print answers."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zodiacedge.cli.options import LOCAL_FILE, Amount, as_argument
from zodiacedge.cli.output import write_text
from zodiacedge.errors import CheckProblem, ZodiacError
from zodiacedge.explain.budget import SECONDS
from zodiacedge.explain.explainer import asked_atom
from zodiacedge.explain.forms.document import document
from zodiacedge.explain.forms.explanation import DEPTH
from zodiacedge.explain.forms.text import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from zodiacedge.cli.console import Console
    from zodiacedge.errors import Diagnostic
    from zodiacedge.explain.forms.outlines import Explained
    from zodiacedge.kb.knowledge_base import KnowledgeBase

    Command = Callable[..., None]

_ENDINGS = {
    "txt": "text",
    "md": "markdown",
    "markdown": "markdown",
    "json": "json",
    "svg": "svg",
    "html": "html",
}
_FORMS = ("text", "markdown", "json", "svg", "html")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer, and where it is written."""

    name: str
    out: str | None
    depth: int | None


def form_options(function: Command) -> Command:
    """Add `--format`, `--out` and `--depth` as the argument `form`, and `--max-seconds` as `seconds`."""

    @click.option(
        "--format", "name", type=click.Choice(_FORMS), help="The form; text, or the extension of --out."
    )
    @click.option(
        "--out", type=LOCAL_FILE, metavar="FILE", help="Write to this file instead of standard output."
    )
    @click.option(
        "--depth",
        type=click.IntRange(min=0),
        default=DEPTH,
        show_default=True,
        metavar="N",
        help="Fold facts at this depth; a page in HTML holds them folded.",
    )
    @click.option(
        "--max-seconds",
        "seconds",
        type=Amount(min=0, min_open=True),
        default=SECONDS,
        show_default=True,
        help="Time limit of the search; the answer says if it ended.",
    )
    @functools.wraps(function)
    def call(
        console: Console,
        *args: object,
        name: str | None,
        out: str | None,
        depth: int,
        seconds: float,
        **options: object,
    ) -> None:
        ending = Path(out).suffix.removeprefix(".").lower() if out else ""
        if console.as_json and not out and name not in {None, "json"}:
            raise click.UsageError(f"--json and --format {name} both want standard output: add --out FILE.")
        if out and name is None and ending and ending not in _ENDINGS:
            raise click.UsageError(f"{out} ends in no known form: add --format, one of {', '.join(_FORMS)}.")
        form = Form(name or _ENDINGS.get(ending, "text"), out, depth)
        function(console, *args, form=form, seconds=seconds, **options)

    return call


def show_answer(console: Console, answer: Explained, form: Form) -> None:
    """Print an answer, or write it to a file; with `--json`, its JSON is on standard output in any case."""
    if form.out:
        write_text(Path(form.out), _written(answer, form).rstrip("\n") + "\n", "name another file with --out")
        console.text(f"wrote {form.out}")
    elif not console.as_json and form.name != "json":
        console.coloured(
            to_text(answer, form.depth, colours=True) if form.name == "text" else _written(answer, form)
        )
    if console.as_json or (form.name == "json" and not form.out):
        console.json(document(answer))


def show_text(console: Console, answer: Explained) -> None:
    """Print an answer as a tree of lines, unless standard output is JSON."""
    console.coloured(to_text(answer, DEPTH, colours=True))


def _written(answer: Explained, form: Form) -> str:
    match form.name:
        case "markdown":
            return answer.to_markdown(form.depth)
        case "json":
            return answer.to_json()
        case "svg":
            return answer.to_svg()
        case "html":
            return answer.to_html(form.depth)
        case _:
            return answer.to_text(form.depth)


def _questions(explain: Sequence[str], why_not: Sequence[str]) -> tuple[tuple[bool, str], ...]:
    return (*((True, text) for text in explain), *((False, text) for text in why_not))


# `--explain` and `--why-not` as the argument `questions`.
question_options = as_argument(
    "questions",
    _questions,
    click.option("--explain", multiple=True, metavar="FACT", help="Say why a fact is there, such as 'p(a)'."),
    click.option("--why-not", multiple=True, metavar="FACT", help="Say why a fact is not there."),
)


def check_questions(questions: Sequence[tuple[bool, str]], prefixes: Mapping[str, str]) -> None:
    """Parse questions before an evaluation, or raise with the errors of all."""
    errors: list[Diagnostic] = []
    for _, text in questions:
        try:
            asked_atom(text, prefixes)
        except ZodiacError as problem:
            errors += problem.diagnostics
    if errors:
        raise CheckProblem(errors)


def answered(kb: KnowledgeBase, questions: Sequence[tuple[bool, str]]) -> list[Explained]:
    """Return the answers to questions: why a fact is there, or is not."""
    with naming_commands("--explain", "--why-not"):
        return [kb.explain(text) if there else kb.why_not(text) for there, text in questions]


def show_texts(console: Console, answers: Sequence[Explained]) -> None:
    """Print answers as trees of lines, with an empty line before each, unless standard output is JSON."""
    for answer in answers:
        console.text()
        show_text(console, answer)


def explanations_document(answers: Sequence[Explained]) -> dict[str, object]:
    """Return the JSON of answers beside other results, if there are any."""
    return {"explanations": [document(answer) for answer in answers]} if answers else {}


@contextmanager
def naming_commands(explain: str, why_not: str) -> Iterator[None]:
    """Let errors of questions name commands in place of methods."""
    try:
        yield
    except ZodiacError as problem:
        problem.diagnostics = tuple(_named(finding, explain, why_not) for finding in problem.diagnostics)
        raise


def _named(finding: Diagnostic, explain: str, why_not: str) -> Diagnostic:
    for code, start, command in (
        ("X003", "why_not says why: ", why_not),
        ("X004", "explain says why: ", explain),
    ):
        if finding.code == code and finding.note.startswith(start):
            return replace(finding, note=f"{command} says why")
    return finding
