"""Fuzz parsers, one after the other: see the package."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.fuzz.parsers import PARSERS

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / ".environments" / "fuzz" / "bin" / "python"
KEPT: Final = ROOT / "build" / "fuzz"
"""Of each parser, inputs that reach something new; and what was found."""
_NOT_KNOWN: Final = 75
"""The exit code where nobody can tell."""
_WARNED: Final = 76
"""The exit code of a turn with a find: it is news, and no fault of the commit whose turn it is."""
_IN_TURN: Final = 4
_TURN_S: Final = 15


def main() -> int:
    """Fuzz, and print a line with figures; returns the exit code."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of {', '.join(PARSERS)}; all by default")
    options.add_argument("--seconds", type=int, default=60, help="for each parser (default: 60)")
    options.add_argument("--turn", metavar="COMMIT", help="a minute in all, for some parsers that the commit chooses")
    arguments = options.parse_args()
    names, seconds = arguments.parsers or list(PARSERS), arguments.seconds
    if unknown := set(names) - set(PARSERS):
        options.error(f"no parser is called {', '.join(sorted(unknown))}")
    if arguments.turn:
        first = int(arguments.turn[:6], 16) % len(names)
        names, seconds = [*names, *names][first : first + _IN_TURN], _TURN_S
    if subprocess.run([PYTHON, "-c", "import atheris"], capture_output=True, check=False).returncode:
        print("fuzz: there is no Atheris for this machine", file=sys.stderr)
        return _NOT_KNOWN
    finds = {name: find for name in names if (find := _fuzz(name, seconds))}
    for name, find in finds.items():
        print(f"{name}: {find}\n  keep it in tests/fuzz/finds/{name}/ once it is mended", file=sys.stderr)
    print(f"fuzz parsers={len(names)} seconds={seconds * len(names)} finds={len(finds)}")
    return 0 if not finds else _WARNED if arguments.turn else 1


def _fuzz(name: str, seconds: int) -> str:
    """Fuzz one parser; returns what was found, empty if nothing."""
    folder, found = KEPT / name / "corpus", KEPT / name / "found"
    for each in (folder, found):
        each.mkdir(parents=True, exist_ok=True)
    # Memory grows with what libraries keep of each distinct schema; what grows without end is a find all the same.
    limits = ["-timeout=10", "-rss_limit_mb=3000", "-max_len=20000"]
    command: Sequence[str | Path] = [
        PYTHON, "-P", Path(__file__).with_name("child.py"), name, folder, *limits, f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    ]  # fmt: skip
    until = time.monotonic() + seconds
    while (remaining_s := round(until - time.monotonic())) > 0:
        timed: Sequence[str | Path] = [*command, f"-max_total_time={remaining_s}"]
        run = subprocess.run(timed, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        if run.returncode == 0 or not _was_kept_waiting(run.stderr, name, limits):
            break
    log = KEPT / name / "log"
    log.write_text(run.stdout + run.stderr)
    tried = re.search(r"number_of_executed_units:\s*(\d+)", run.stderr)
    print(f"{name}: {tried[1] if tried else 'an unknown number of'} inputs", file=sys.stderr)
    return "" if run.returncode == 0 else _last_error(run.stdout + run.stderr) + f"; see {log.relative_to(ROOT)}"


def _was_kept_waiting(text: str, name: str, limits: Sequence[str]) -> bool:
    """Return whether the last input was slow because of the machine alone: another time, it is not. Removes it then."""
    written = re.search(r"Test unit written to (\S+/timeout-\w+)", text)
    if written is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(written[1], folder)
        again: Sequence[str | Path] = [
            PYTHON, "-P", Path(__file__).with_name("child.py"), name, folder, *limits, f"-artifact_prefix={folder}/",
            "-runs=0",
        ]  # fmt: skip
        if subprocess.run(again, cwd=ROOT, capture_output=True, check=False).returncode:
            return False
    Path(written[1]).unlink()
    return True


def _last_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "ALARM" in line or "Flaw" in line or "Exception" in line]
    return next(iter(errors), lines[-1] if lines else "no output")[:500]


if __name__ == "__main__":
    sys.exit(main())
