"""Works on a disk that fills up, and then on one that may not be written; says what happens.

Run as a program with a folder and, if a small disk is to be mounted there, the program that mounts: whoever
starts it gives it a mount namespace of its own then. Without, the system refuses files longer than a limit.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import zodiacedge as ze

_ROOM = 600_000


def _fill(store: Path) -> dict[str, object]:
    """Change a store until the disk takes no more, make room, and go on."""
    kb = ze.open(store, create=True)
    with kb.change() as c:
        c.add_rules("q(X) :- p(X, _) .")
    codes: list[str] = []
    while not codes:
        before = kb.version, len(kb.facts())
        try:
            with kb.change() as c:
                c.add_facts([("p", f"{kb.version} {n}" * 3, n) for n in range(300)])
        except ze.ZodiacError as problem:
            codes = [one.code for one in problem.diagnostics]
            assert (kb.version, len(kb.facts())) == before
    return {"codes": codes, "version": kb.version, "kb": kb}


def main(folder: str, mount: str = "") -> None:
    """Fill a disk, free it, and write-protect it."""
    root = Path(folder)
    if mount:
        subprocess.run([mount, "-t", "tmpfs", "-o", f"size={_ROOM}", "none", folder], check=True)
        (root / "ballast").write_bytes(bytes(_ROOM // 3))
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_ROOM // 2, resource.RLIM_INFINITY))
    store = root / "farm"
    found = _fill(store)
    kb = found.pop("kb")
    assert isinstance(kb, ze.KnowledgeBase)
    # There is room again.
    if mount:
        (root / "ballast").unlink()
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with kb.change() as c:
        c.add_facts("p(last, 1) .")
    kb.close()
    with ze.open(store, read_only=True) as again:
        found |= {"again": again.version, "recovered": len(again.recovered), "sound": again.verify().ok}
        found["last"] = bool(again.query("?- q(last) ."))
    if mount:
        subprocess.run([mount, "-o", "remount,ro", folder], check=True)
        with ze.open(store, read_only=True) as again:
            found["read"] = again.version
        for place in (store, root / "new"):
            try:
                ze.open(place, create=True)
            except ze.ZodiacError as problem:
                found[f"refused {place.name}"] = [one.code for one in problem.diagnostics]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
