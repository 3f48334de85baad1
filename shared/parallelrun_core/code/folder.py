"""The files of a folder that are its code: all but what tools and runs leave there, and what its ignore file names.

What an image is built of is taken in the same way, with an ignore file of its own (`context.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from parallelrun_core.code.ignore_file import ignore_lines
from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.paths import opened_path

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SKIPPED_FOLDERS: Final = frozenset({"__pycache__", ".git", ".venv", ".ipynb_checkpoints", ".parallelrun"})
# What a folder that isn't code holds: an environment of venv or conda, the working data or the logs of an earlier run.
_SIGNS: Final = ("pyvenv.cfg", "conda-meta", ".parallelrun", "logs/.parallelrun")
IGNORE_FILES: Final = (".amlignore", ".gitignore")
"""The first that is there counts, and only at the top of the folder, as in Azure ML."""
_MOST_DEEP: Final = 100
"""What it takes to try the pattern of an ignore file grows with the depth of a file."""
LEAVE_OUT_HINT: Final = "a line in .amlignore, else .gitignore, at the top of the code leaves out what isn't code"


FilesBelow = Iterator[tuple[tuple[str, ...], int, IO[bytes]]]
"""Where each file is below a folder, its mode, and the file, open until the next one."""


class Ignored(Protocol):
    """The content of an ignore file."""

    def match_file(self, file: str) -> bool:
        """Return whether this is left out: a file by its path below the folder, or a folder with
        all in it, with a `/`.
        """
        ...


def code_files(folder: Path, leave_out: Path | None = None) -> FilesBelow:
    """The files that make up a code folder.

    Args:
        leave_out: a folder that may be below it and isn't code.

    Raises:
        UnsafePath: a link leads out of the folder, or to one above itself.
        InvalidInput: the ignore file has a pattern that isn't one.
    """
    return files_below(folder, _ignored_in(folder), leave_out)


def files_below(folder: Path, ignored: Ignored, leave_out: Path | None = None) -> FilesBelow:
    """The files below a folder but for what is ignored. Links are followed only within it.

    Raises:
        UnsafePath: a link leads out of the folder, or to one above itself.
        InvalidInput: a folder is too deep.
    """
    root = folder.resolve()
    left_out = leave_out.resolve() if leave_out else None
    for current, subfolders, names in os.walk(folder, followlinks=True):
        here = Path(current)
        below = here.relative_to(folder)
        if len(below.parts) > _MOST_DEEP:
            raise InvalidInput.at(
                "/code", f"{Path(*below.parts[:3])}/… goes deeper than {_MOST_DEEP} folders", LEAVE_OUT_HINT
            )
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not (name in SKIPPED_FOLDERS or ignored.match_file(f"{below / name}/"))
            and not any(os.path.exists(here / name / sign) for sign in _SIGNS)
            and (here / name).resolve() != left_out
        )
        for name in subfolders:
            _refuse_outside(here / name, folder, root)
        for name in sorted(names):
            path = here / name
            if ignored.match_file(str(below / name)):
                continue
            _refuse_outside(path, folder, root)
            if path.is_file():
                with path.open("rb") as file:
                    if not opened_path(file.fileno()).is_relative_to(root):  # a link has appeared since
                        raise _outside(below / name)
                    yield (below / name).parts, path.stat().st_mode, file


def _ignored_in(folder: Path) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # most processes never need it

    for name in IGNORE_FILES:
        lines = ignore_lines(folder, name, "/code")
        if lines is None:
            continue
        try:
            return GitIgnoreSpec.from_lines(lines)
        except ValueError as error:
            raise InvalidInput.at("/code", f"{name}: {error}") from error
    return GitIgnoreSpec.from_lines([])


def _outside(name: Path) -> InvalidInput:
    return UnsafePath.at("/code", f"{name} is a link to outside the code folder", LEAVE_OUT_HINT)


def _refuse_outside(path: Path, folder: Path, root: Path) -> None:
    if not path.is_symlink():
        return
    name = path.relative_to(folder)
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        raise UnsafePath.at("/code", f"{name} is a link to itself") from error
    if not target.is_relative_to(root):
        raise _outside(name)
    if target.is_dir() and path.parent.resolve().is_relative_to(target):
        raise UnsafePath.at("/code", f"{name} is a link to a folder above it", LEAVE_OUT_HINT)
