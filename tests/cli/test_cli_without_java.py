"""Commands that need Spark, where there is no Java: one sentence, exit code 1, and nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Done

    Zodiac = Callable[..., Done]
    Save = Callable[[str, str], Path]

NO_JAVA = "error U014: Spark needs Java 17 or newer, and there is no Java"


@pytest.fixture
def no_java(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """A folder with rules, facts and a store, and no Java anywhere; return what its files say."""
    (folder / "a.rules").write_text("r: q(X, Y) :- p(Y, X) .\n")
    (folder / "landing").mkdir()
    (folder / "landing" / "p.csv").write_text("a,b\n")
    with ze.open(folder / "farm.zodiac", create=True) as kb, kb.change() as change:
        change.add_rules("r: q(X, Y) :- p(Y, X) . p(a, b) .")
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("no programs")))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    # Another test may have started it in this process.
    monkeypatch.setattr("zodiacedge.engine.spark.cluster.session._running", str)
    return files(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "command",
    [
        "run a.rules --facts landing/p.csv --engine spark",
        "run a.rules --engine spark --out exported",
        "init new.zodiac --engine spark",
        "init new.zodiac --rules a.rules --facts landing/p.csv --engine spark",
        "query farm.zodiac ?-q(X,Y). --engine spark",
        "verify farm.zodiac --engine spark",
        "apply farm.zodiac --add-facts landing/p.csv --engine spark",
        "stream farm.zodiac --from landing --engine spark",
        "stream farm.zodiac --from landing --once --engine spark",
        "bench spark --small --only rs1 --out results",
    ],
)
def test_one_sentence_says_what_to_install(
    command: str, zodiac: Zodiac, folder: Path, no_java: dict[str, bytes]
) -> None:
    done = zodiac(*command.split())
    assert (done.code, done.out) == (1, "")
    told = done.err.splitlines()
    assert told[0] == NO_JAVA
    assert told[1].endswith("all but the engine spark works without it")
    assert len(told) == 2
    assert files(folder) == no_java


@pytest.mark.usefixtures("no_java")
def test_the_embedded_engine_streams_without_java(zodiac: Zodiac, folder: Path) -> None:
    (folder / "landing" / "p.csv").write_text("<c>,<d>\n<e>\n")
    done = zodiac("stream", "farm.zodiac", "--from", "landing", "--once")
    assert done.code == 0
    assert done.err.startswith("zodiac:   ")
    assert done.err.endswith("p.csv:2: 1 column where the first row has 2 columns\n")
    assert done.out.startswith("batch 0: 1 file, +1 fact, 1 bad line skipped, version 2")
    assert zodiac("stream", "farm.zodiac", "--from", "landing", "--once").out.startswith("version 2:")


def test_a_store_that_is_there_opens_without_java(folder: Path, no_java: dict[str, bytes]) -> None:
    with ze.open(folder / "farm.zodiac", create=True, engine="spark") as kb:
        assert kb.explicit_counts() == {"p": 1}
    assert set(files(folder)) == set(no_java)
