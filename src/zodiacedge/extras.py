"""Optional libraries, and the extras of the package that bring them: `pip install 'zodiacedge[store]'`."""

from __future__ import annotations

from importlib.util import find_spec

from zodiacedge.errors import Diagnostic, UsageProblem

LIBRARIES = {
    "store": ("pyarrow", "deltalake"),
    "tables": ("pyarrow",),
    "rdf": ("pyoxigraph",),
    "compression": ("zstandard",),
    "drawing": ("grandalf",),
    "objects": ("obstore", "pyarrow", "deltalake"),
    "fleet": ("tuf", "cryptography", "starlette", "uvicorn", "urllib3"),
    "mqtt": ("paho",),
    "discovery": ("zeroconf",),
    "spark": ("pyspark", "pandas", "pyarrow", "deltalake"),
}
"""The libraries of each extra."""


def has(extra: str) -> bool:
    """Whether the libraries of an extra are installed."""
    return not _missing(extra)


def need(extra: str, what: str) -> None:
    """Raise unless the libraries of an extra are installed, and say what needs them."""
    missing = _missing(extra)
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageProblem(
            Diagnostic(
                "U007",
                f"{what} needs {' and '.join(missing)}, which {verb} not installed",
                f"install it: pip install 'zodiacedge[{extra}]'",
            )
        )


def _missing(extra: str) -> list[str]:
    return [library for library in LIBRARIES[extra] if find_spec(library) is None]
