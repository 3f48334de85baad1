"""`python -m tests [SELECTION…]` runs tests as `make test` and CI do.

A selection is `test` (the default), a part of `make test-all` by its name, `all` for all of those, or a folder, file or
test. Exits with 0 if all tests have passed, if need be in a second try.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.parts import ROOT, Parts, all_test_files

PROCESSES: Final = os.environ.get("TEST_PROCESSES", "3")
"""More than there are cores: most tests wait for other processes, those of `make test-all` most, which get one more."""
_NO_TESTS: Final = 5
_FAILED: Final = 1


def main(selections: Sequence[str]) -> int:
    """Run what is selected; returns the exit code."""
    names = [*dict.fromkeys(name for selection in selections for name in _expand(selection))]
    _compile()
    processes = PROCESSES if [*selections] == ["test"] else str(int(PROCESSES) + 1)
    beside = [name for name in names if not _is_marked(name, "pytestmark = pytest.mark.chaos")]
    codes = [_side_by_side(beside, processes)]
    # Chaos tests are never rerun: one lost or duplicated row is a failure.
    if chaos := [name for name in names if _is_marked(name, "pytest.mark.chaos")]:
        codes.append(run_pytest("-n", PROCESSES, "-m", "chaos and not docker", *chaos))
    # These share one engine, and `make test` has none of them.
    if [*selections] != ["test"] and (docker := [name for name in names if _is_marked(name, "pytest.mark.docker")]):
        codes.append(run_pytest("-m", "docker", *docker))
    return max(code if code != _NO_TESTS else 0 for code in codes)


def _compile() -> None:
    """Compile our code once. Tests start thousands of processes, and where Python writes no bytecode
    (`PYTHONDONTWRITEBYTECODE`), each of them would compile it anew."""
    for folder in ("client", "services", "shared"):
        compileall.compile_dir(ROOT / folder, quiet=2)


def _expand(selection: str) -> list[str]:
    """The files of a selection, relative to the repository; a test stays as it is."""
    if selection.partition("::")[0].endswith(".py"):
        return [selection]
    files = all_test_files()
    if (ROOT / selection).is_dir():
        return [file for file in files if (ROOT / file).is_relative_to((ROOT / selection).resolve())]
    return Parts.read().arguments(selection, files)


def _is_marked(name: str, mark: str) -> bool:
    return mark in Path(ROOT, name.partition("::")[0]).read_text(encoding="utf-8")


def _side_by_side(names: Sequence[str], processes: str) -> int:
    """Run tests in so many processes, and those that fail once more, one after the other."""
    if not names:
        return 0
    chosen = ("-m", "not docker and not chaos", *names)
    # What the tests of a file share, such as a cluster, is started once, and files begin in order.
    code = run_pytest("--durations=15", "-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", *chosen)
    if code != _FAILED:
        return code
    print("the failed tests run once more, one at a time", flush=True)
    return run_pytest("--last-failed", "--last-failed-no-failures", "none", *chosen)


def run_pytest(*arguments: str) -> int:
    """Run pytest in a process of its own; returns its exit code."""
    return subprocess.run([sys.executable, "-m", "pytest", "-rs", *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or ["test"]))
    except LookupError as error:
        sys.exit(str(error))
