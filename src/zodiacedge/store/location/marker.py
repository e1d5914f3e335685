"""The file that marks a location as a store, and the check of its format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from zodiacedge.store.layout import DELTA_LOG, FORMAT, LOG_FOLDER, MARKER
from zodiacedge.store.location.local import LocalLocation
from zodiacedge.store.problems import is_a_file, newer_format, no_marker, no_store, not_a_store, unreadable

if TYPE_CHECKING:
    from zodiacedge.store.location.base import Location


def log_file_names(location: Location) -> frozenset[str]:
    """Return the file names of both logs: they differ if another process has written."""
    return frozenset(file.name for folder in (LOG_FOLDER, DELTA_LOG) for file in location.listed(folder))


def check_store(location: Location) -> None:
    """Raise unless the location is a store of a known format without links."""
    try:
        location.refuse_links()
        document = json.loads(location.read(MARKER))
        made = document["format"]
    except (FileNotFoundError, NotADirectoryError) as error:
        if isinstance(location, LocalLocation) and location.root.is_file():
            raise is_a_file(location) from error
        if not location.exists():
            raise no_store(location) from error
        raise no_marker(location, MARKER) from error
    except OSError as error:
        raise unreadable(location, error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise not_a_store(location, f"{MARKER} cannot be read") from error
    if not isinstance(made, int) or made > FORMAT:
        raise newer_format(location, made, FORMAT)


def marker() -> bytes:
    """Return the contents of the marker, the last file that the creation of a store writes."""
    return json.dumps({"format": FORMAT}).encode() + b"\n"
