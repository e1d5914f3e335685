"""The code blocks of the README and of the documentation run as they are written.

A document runs from top to bottom in a temporary folder that holds a copy of `examples/`:

- ```` ```python ```` blocks are executed, all in one namespace;
- an ```` ```output ```` block is what the Python block above it prints;
- in ```` ```console ```` blocks the lines after `$ ` are commands and the lines below a command are
  what it prints, where `...` (or `…`) stands for any text; nothing below means "not compared";
- in ```` ```sh ```` blocks every line is a command, with or without `$ `, and nothing is compared;
- only commands that start with a word of `RUNS` are run: the others (`make`, `git`) set up what a test has;
- a block with `title="name"` in its first line is saved under that name for the commands below it.

A comment on the line before a block changes this, and is invisible on the page:

    <!-- test: skip, the reason -->      the block is not run
    <!-- test: exit 1 -->                its last command ends with this code
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zodiacedge

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.exists()
]
FOR_DEVELOPERS = {"CONTRIBUTING.md", "architecture.md"}
FOR_USERS = [
    path
    for path in (
        *DOCUMENTS,
        *sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")),
        *sorted((ROOT / "docs" / "jobs").glob("*.py")),
    )
    if path.name not in FOR_DEVELOPERS and path.parent.name != "decisions"
]
RUNS = {"zodiac", "cat", "head", "ls"}

_FENCE = re.compile(r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)(?P<rest>[^`]*)")
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')
_DIRECTIVE = re.compile(r"<!--\s*test:\s*(?:(?P<skip>skip),\s*\S.*?|exit\s+(?P<exit>\d+))\s*-->")
_INSIDE = re.compile(r"\b(?:from|import) +zodiacedge\.[\w.]+")
_USED = re.compile(r"\bze\.([A-Za-z_]\w*)")
_ANY_TEXT = re.compile(r"\.\.\.|…")


@dataclass(frozen=True)
class Block:
    """A fenced block, and what the comment above it asks for."""

    language: str
    title: str
    text: str
    line: int
    skip: bool
    exit_code: int


@dataclass(frozen=True)
class Command:
    """A command of a block and what the document says it prints, if it says so."""

    text: str
    expected: str


def blocks(markdown: str) -> Iterator[Block]:
    lines = markdown.splitlines()
    above = ""
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if not opening:
            above = lines[at].strip() or above
            at += 1
            continue
        first, indent = at + 1, len(opening["indent"])
        at = first
        while at < len(lines) and lines[at].strip() != opening["fence"]:
            at += 1
        assert at < len(lines), f"the block in line {first} does not end"
        directive = _DIRECTIVE.fullmatch(above)
        assert directive or "<!-- test:" not in above, f"line {first}: not understood: {above}"
        title = _TITLE.search(opening["rest"])
        yield Block(
            language=opening["language"],
            title=title["name"] if title else "",
            text="".join(line[indent:] + "\n" for line in lines[first:at]),
            line=first,
            skip=bool(directive and directive["skip"]),
            exit_code=int(directive["exit"] or 0) if directive else 0,
        )
        above = ""
        at += 1


def commands(block: Block) -> Iterator[Command]:
    prompts = block.language == "console"
    command, output = "", ""
    for line in [*block.text.splitlines(), "$ "]:
        if command.endswith("\\"):
            command += "\n" + line.removeprefix("> ")
        elif line.startswith("$ ") or not prompts:
            if command:
                yield Command(command, output)
            command, output = line.removeprefix("$ "), ""
        else:
            output += line + "\n"


def agrees(expected: str, printed: str) -> bool:
    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    pattern = ".*?".join(re.escape(part) for part in _ANY_TEXT.split(tidy(expected)))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def run_command(command: Command, folder: Path, exit_code: int, place: str) -> None:
    bash = shutil.which("bash")
    assert bash, "the commands of the documents are written for bash"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [bash, "-c", command.text],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "110", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    shown = f"{place}: $ {command.text}\n{done.stdout}"
    assert done.returncode == exit_code, f"{shown}\nexit code {done.returncode}, not {exit_code}"
    if command.expected.strip():
        assert agrees(command.expected, done.stdout), f"{shown}\nThe document says:\n{command.expected}"


def run_document(markdown: str, name: str, folder: Path) -> int:
    """Run the blocks of a document in a folder; return how many were run."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    count = 0
    for block in blocks(markdown):
        place = f"{name}:{block.line}"
        if block.skip:
            continue
        if block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            # The empty lines make a traceback point at the line of the document.
            code = compile("\n" * block.line + block.text, name, "exec")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)  # noqa: S102 - the project's own documents
            count += 1
        elif block.language == "output":
            shown = f"{place} shows other lines than the block above prints:\n{printed.getvalue()}"
            assert agrees(block.text, printed.getvalue()), shown
        elif block.language in {"console", "sh"}:
            found = [c for c in commands(block) if c.text.split()[:1] and c.text.split()[0] in RUNS]
            for command in found:
                run_command(command, folder, block.exit_code if command is found[-1] else 0, place)
            count += bool(found)
    return count


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_document_run_as_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = path.read_text(encoding="utf-8")
    rules = Path("bench/zodiacedge_bench/workloads/rules")
    if rules.as_posix() in markdown:
        shutil.copytree(ROOT / rules, tmp_path / rules)
    monkeypatch.chdir(tmp_path)
    run_document(markdown, path.relative_to(ROOT).as_posix(), tmp_path)


def test_python_blocks_share_a_namespace(tmp_path: Path) -> None:
    assert run_document("```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n", "d.md", tmp_path) == 2


def test_a_failing_python_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_document("```python\n1 / 0\n```\n", "d.md", tmp_path)


def test_an_output_block_is_what_the_python_block_above_prints(tmp_path: Path) -> None:
    text = "```python\nprint('in 2 s')\n```\n\n```output\nin ... s\n```\n"
    assert run_document(text, "d.md", tmp_path) == 1
    with pytest.raises(AssertionError, match="other lines"):
        run_document(text.replace("in ...", "at ..."), "d.md", tmp_path)


@pytest.mark.parametrize("path", FOR_USERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_users_are_asked_for_public_names_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert _INSIDE.findall(text) == []
    assert {*_USED.findall(text)} <= {*zodiacedge.__all__}


@pytest.mark.parametrize(
    "line",
    [
        "from zodiacedge.io import read",
        "import zodiacedge.io.read as r",
        '  "from zodiacedge.kb.query import Q"',
    ],
)
def test_an_import_from_inside_is_found(line: str) -> None:
    assert _INSIDE.search(f"text\n{line}\n")
    assert not _INSIDE.search("import zodiacedge as ze\nfrom zodiacedge import Fact\n")


def test_no_block_of_plain_text_follows_a_python_block() -> None:
    """What a Python block prints is an output block; a text block has a title or its reason not to be run."""
    for path in DOCUMENTS:
        listed = list(blocks(path.read_text(encoding="utf-8")))
        for above, below in itertools.pairwise(listed):
            plain = below.language == "text" and not below.title and not below.skip
            assert not (above.language == "python" and plain), f"{path.name}:{below.line}"


def test_a_titled_block_is_a_file_for_the_commands_below(tmp_path: Path) -> None:
    text = '```text title="a.txt"\none\n```\n\n```console\n$ cat a.txt\none\n$ make nothing\n```\n'
    assert run_document(text, "d.md", tmp_path) == 1


def test_other_output_than_the_document_shows_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("two\n")
    with pytest.raises(AssertionError, match="The document says"):
        run_document("```console\n$ cat a.txt\none\n```\n", "d.md", tmp_path)


def test_a_command_that_fails_fails_unless_announced(tmp_path: Path) -> None:
    text = "```sh\ncat nowhere\n```\n"
    with pytest.raises(AssertionError, match="exit code 1, not 0"):
        run_document(text, "d.md", tmp_path)
    assert run_document("<!-- test: exit 1 -->\n" + text, "d.md", tmp_path) == 1


def test_a_block_is_skipped_only_with_a_reason(tmp_path: Path) -> None:
    text = "```sh\ncat nowhere\n```\n"
    assert run_document("<!-- test: skip, needs a cluster -->\n\n" + text, "d.md", tmp_path) == 0
    with pytest.raises(AssertionError, match="not understood"):
        run_document("<!-- test: skip -->\n" + text, "d.md", tmp_path)


def test_dots_stand_for_any_text() -> None:
    assert agrees("facts 3\nin ... seconds\n", "facts 3\nin 0.12 seconds  \n")
    assert agrees("facts 3\n…\n", "facts 3\none\ntwo\n")
    assert not agrees("facts 3\nin ... seconds\n", "facts 4\nin 0.12 seconds\n")


def test_a_long_command_may_go_on_in_the_next_line() -> None:
    block = Block("console", "", "$ zodiac run a \\\n>   --json\n{}\n", 1, skip=False, exit_code=0)
    assert list(commands(block)) == [Command("zodiac run a \\\n  --json", "{}\n")]
