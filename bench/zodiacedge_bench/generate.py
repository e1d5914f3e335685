"""`zodiac generate`: the data of the benchmarks as files, with their rules."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from zodiacedge.cli.app import common
from zodiacedge.cli.output import check_folder, write_text
from zodiacedge.errors import counted
from zodiacedge.io import write_facts
from zodiacedge_bench.workloads import paper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from zodiacedge.cli.console import Console
    from zodiacedge.io import ExportReport
    from zodiacedge.language.ast import Fact

_FORMATS = ("parquet", "csv", "nt")
_COMPRESSIONS = ("gz", "bz2", "zst")
_Command = TypeVar("_Command", bound="Callable[..., None]")


@click.group("generate")
def command() -> None:
    """Write the data of a benchmark and its rules to a folder.

    The same command writes the same files, byte for byte.

    \b
    Example:
      zodiac generate lubm --universities 10 --out lubm10
      zodiac run lubm10/lubm.rules --facts lubm10
    """  # noqa: D301 - \b is click's mark for text that it must not wrap


def _files(function: _Command) -> _Command:
    for option in (
        click.option(
            "--compression", type=click.Choice(_COMPRESSIONS), help="Of the files; Parquet has no bz2."
        ),
        click.option("--format", "form", type=click.Choice(_FORMATS), default=_FORMATS[0], show_default=True),
        click.option("--out", required=True, metavar="DIR", help="The folder of the files."),
    ):
        function = option(function)
    return function


_turbines = click.option(
    "--turbines", type=click.IntRange(min=1), default=200, show_default=True, help="Length of a chain."
)


@command.command("lubm")
@click.option("--universities", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--departments", type=click.IntRange(min=1), help="The maximum of a university.")
@click.option("--iris", is_flag=True, help="Entities are IRIs in tables too, as in N-Triples.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the random data.")
@_files
@common
def lubm(  # noqa: PLR0913 - one argument per option
    console: Console,
    *,
    universities: int,
    departments: int | None,
    iris: bool,
    seed: int | None,
    out: str,
    form: str,
    compression: str | None,
) -> None:
    r"""LUBM: universities and 128 rules.

    A university has 15 to 25 departments, and about 6,700 facts for each of them.

    \b
    Example:
      zodiac generate lubm --universities 10 --out lubm10
      zodiac generate lubm --format nt --compression gz --out lubm1
    """
    from zodiacedge_bench.workloads import lubm as workload  # noqa: PLC0415 - loads numpy and pyarrow
    from zodiacedge_bench.workloads.lubm_university import SEED  # noqa: PLC0415 - as above

    def write(folder: Path) -> ExportReport:
        return workload.write(
            folder,
            universities,
            form=form,
            compression=compression or "",
            departments=departments,
            iris=iris,
            seed=SEED if seed is None else seed,
        )

    _generate(console, out, write, {"lubm": workload.rules()})


@command.command("paper-ds1")
@_turbines
@_files
@common
def paper_ds1(console: Console, *, turbines: int, out: str, form: str, compression: str | None) -> None:
    r"""Data set 1 of the paper, with rule set 1.

    A row of turbines, each with its neighbour and its air temperature.

    \b
    Example:
      zodiac generate paper-ds1 --turbines 400 --out ds1
    """
    facts = paper.ds1(turbines)
    _generate(console, out, _writer(facts, form, compression), {"rs1": paper.rule_set(1)})


@command.command("paper-ds2")
@click.option(
    "--rule-set", type=click.IntRange(2, 3), default=2, show_default=True, help="The rule set to write."
)
@_turbines
@_files
@common
def paper_ds2(  # noqa: PLR0913 - one argument per option
    console: Console, *, rule_set: int, turbines: int, out: str, form: str, compression: str | None
) -> None:
    r"""Data set 2 of the paper, with rule set 2 or 3.

    Four chains of turbines, one after the other.

    \b
    Example:
      zodiac generate paper-ds2 --turbines 200 --rule-set 3 --out ds2
    """
    facts = paper.ds2(turbines)
    _generate(console, out, _writer(facts, form, compression), {f"rs{rule_set}": paper.rule_set(rule_set)})


@command.command("closure-dense")
@_files
@common
def closure_dense(console: Console, *, out: str, form: str, compression: str | None) -> None:
    r"""A dense graph, with its closure as rules.

    It has 2,000 nodes and 5,998 edges, and its closure 3,545,627 facts.

    \b
    Example:
      zodiac generate closure-dense --format csv --out dense
    """
    _graph(console, "closure-dense", out, form, compression)


@command.command("closure-sparse")
@_files
@common
def closure_sparse(console: Console, *, out: str, form: str, compression: str | None) -> None:
    r"""A sparse graph, with its closure as rules.

    It has 20,000 nodes and 21,998 edges, and its closure 7,752,209 facts.

    \b
    Example:
      zodiac generate closure-sparse --format csv --out sparse
    """
    _graph(console, "closure-sparse", out, form, compression)


def _graph(console: Console, name: str, out: str, form: str, compression: str | None) -> None:
    from zodiacedge_bench.workloads.graphs import WORKLOADS  # noqa: PLC0415 - loads numpy

    workload = WORKLOADS[name]()
    # A subject in RDF is not a number.
    facts = workload.facts(iris=form == "nt")
    _generate(console, out, _writer(facts, form, compression), {workload.program: workload.rules})


def _writer(facts: Iterable[Fact], form: str, compression: str | None) -> Callable[[Path], ExportReport]:
    return lambda folder: write_facts(facts, folder, form=form, compression=compression or "")


def _generate(
    console: Console, out: str, write: Callable[[Path], ExportReport], programs: Mapping[str, str]
) -> None:
    folder = Path(out)
    check_folder(folder)
    started = time.perf_counter()
    report = write(folder)
    for name, text in programs.items():
        write_text(folder / f"{name}.rules", text)
    seconds = time.perf_counter() - started
    console.table(("predicate", "facts"), [(f.predicate.name, f"{f.rows:,}") for f in report.files])
    files = counted(len(report.files), "file")
    console.text(f"wrote {counted(report.rows, 'fact')} to {files} in {out}, {seconds:.3f} s")
    for name in programs:
        console.text(f"next: zodiac run {folder / name}.rules --facts {out}")
    if console.as_json:
        console.json(
            {
                "folder": out,
                "facts": report.rows,
                "predicates": {file.predicate.name: file.rows for file in report.files},
                "files": [file.path.name for file in report.files],
                "rules": [f"{name}.rules" for name in programs],
                "seconds": seconds,
            }
        )
