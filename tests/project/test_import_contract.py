"""The layers of `docs/architecture.md` hold, and heavy libraries load only when used."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "zodiacedge"
HEAVY = {"click", "deltalake", "grandalf", "numba", "numpy", "pyarrow", "pyoxigraph", "pyspark", "rich"}


def test_every_import_follows_the_contract() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_stage_has_its_place_in_the_contract() -> None:
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    layers = set(
        contract["importlinter:contract:layers"]["layers"].translate(str.maketrans("()|:", "    ")).split()
    )
    placed = {layer.removeprefix("zodiacedge.") for layer in layers}
    stages = {_name(path) for path in PACKAGE.iterdir() if _is_module(path)} - {"engine"}
    engines = {f"engine.{_name(path)}" for path in (PACKAGE / "engine").iterdir() if _is_module(path)}
    assert stages | engines <= placed, f"add to .importlinter: {sorted((stages | engines) - placed)}"


def test_the_layers_of_packages_are_those_of_the_architecture_page() -> None:
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    layers = {
        section["containers"].strip().removeprefix("zodiacedge.").replace(".", "/"): [
            set(re.split(r" *[|:] *", line)) for line in reversed(section["layers"].split("\n")[1:])
        ]
        for section in contract.values()
        if "containers" in section
    }
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = {
        package: [set(re.findall(r"`(\w+)`", layer)) for layer in row.split("→")]
        for package, row in re.findall(r"^\| `([\w/]+)` \| (.* → .*) \|$", page, re.MULTILINE)
    }
    assert shown == layers


def test_importing_the_package_loads_no_heavy_library() -> None:
    script = f"import sys, zodiacedge; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_stream_of_the_embedded_engine_loads_no_session_of_spark() -> None:
    script = "import sys, zodiacedge.pipeline.stream; print('zodiacedge.engine.spark.cluster' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _is_module(path: Path) -> bool:
    return (path.suffix == ".py" and path.name != "__init__.py") or (path / "__init__.py").exists()


def _name(path: Path) -> str:
    return path.name.removesuffix(".py")
