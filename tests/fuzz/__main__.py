"""Fuzz for some minutes: `python -m fuzz --minutes 30`."""

from __future__ import annotations

import argparse
import sys
import time

from fuzz.cases import SUBJECTS, fuzz


def main() -> int:
    """Fuzz, and tell what was found; the exit code is 1 if that is something."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--only", choices=SUBJECTS, action="append", help="the subjects; all if not given")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first case")
    parser.add_argument("--cases", type=int, default=10**9, help="the most cases of each subject")
    options = parser.parse_args()
    tally = fuzz(options.only or list(SUBJECTS), options.seed, options.minutes, options.cases)
    for name, seed, wrong in tally.bugs:
        sys.stdout.write(f"--only {name} --seed {seed} --cases 1\n{wrong}\n")
    counts = ", ".join(f"{count:,} {name}" for name, count in tally.cases.items() if count)
    sys.stdout.write(f"cases from seed {options.seed}: {counts}\n{len(tally.bugs)} bugs\n")
    return bool(tally.bugs)


if __name__ == "__main__":
    sys.exit(main())
