"""`python -m tests.quick` runs the tests that are nearest to what has changed: what `make quick` does.

A change is what differs from main; on main itself, what is not committed, or else the last commit. The nearest tests
are those that have changed, and those that import a module that has. So few are run that it takes some seconds, those
without servers first; the last line counts the others.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.__main__ import run_pytest
from tests.parts import ROOT, Parts, all_test_files

OF_THE_PAGE: Final = ("tests/studio/test_build.py", "tests/studio/test_units.py")
ALWAYS: Final = ("tests/unit/test_layout.py", "tests/unit/test_docs.py")
MOST_WITHOUT_SERVERS: Final = 40
MOST_WITH_SERVERS: Final = 4
_SOURCES: Final = ("shared/", "client/", "services/api/", "services/master/", "services/agent/",
                   "services/concatenator/", "services/provisioner/")  # fmt: skip


def main() -> int:
    """Run the nearest tests; returns the exit code."""
    changed = changed_files()
    near = nearest(changed, all_test_files())
    chosen = choose(near)
    print(f"{len(changed)} files have changed; {len(near)} files with tests are near to them", flush=True)
    if any(name.startswith("studio/") for name in changed):
        chosen += OF_THE_PAGE
    names = sorted({*chosen, *ALWAYS})
    code = run_pytest("-q", "-n", "2", "--dist", "loadfile", "-m", "not docker and not chaos", *names)
    if left_out := len({*near} - {*chosen}):
        print(f"quick: {left_out} of the nearest files were left out; `make test` runs more")
    return code


def changed_files() -> list[str]:
    """The files that differ from main, relative to the repository."""
    head, base = _git("rev-parse", "HEAD"), _git("merge-base", "HEAD", "main", "--")
    changed = {*_git("diff", "--name-only", *(base or head)), *_git("ls-files", "--others", "--exclude-standard")}
    if not changed:
        changed = {*_git("diff", "--name-only", "HEAD~1", "HEAD")}
    return sorted(name for name in changed if (ROOT / name).is_file())


def _git(*arguments: str) -> list[str]:
    """The lines that git answers; none if it can't."""
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.split() if answer.returncode == 0 else []


def nearest(changed: Iterable[str], test_files: Iterable[str]) -> list[str]:
    """The files with tests that have changed, then those that import what has.

    Args:
        changed: files, relative to the repository.
        test_files: those to choose from, likewise.
    """
    changed = set(changed)
    modules = {module for name in changed if (module := module_of(name))}
    direct = [file for file in test_files if file in changed]
    importing = [file for file in test_files if file not in changed and modules & set(imports_of(ROOT / file))]
    return [*direct, *sorted(importing, key=lambda file: not _is_without_servers(file))]


def choose(files: Iterable[str]) -> list[str]:
    """So many of these files, in their order, as take some seconds; none that only `make test-all` runs."""
    parts = Parts.read()
    ours = [file for file in files if parts.topic_of(file)]
    return [
        *[file for file in ours if _is_without_servers(file)][:MOST_WITHOUT_SERVERS],
        *[file for file in ours if not _is_without_servers(file)][:MOST_WITH_SERVERS],
    ]


def _is_without_servers(file: str) -> bool:
    return file.startswith(("tests/unit/", "tests/conformance/"))


def module_of(file: str) -> str | None:
    """The name by which a Python file is imported; none for any other file."""
    if not file.endswith(".py"):
        return None
    source = next((each for each in _SOURCES if file.startswith(each)), "")
    return file.removeprefix(source).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(path: Path) -> Iterator[str]:
    """All names of modules that a file imports, and of what it imports from them, as these may be modules, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


if __name__ == "__main__":
    sys.exit(main())
