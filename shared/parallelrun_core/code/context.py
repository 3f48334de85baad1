"""What an image is built of: a folder with a Dockerfile, less what its `.dockerignore` names.

It is kept like code, by the hash of its content, so it is the same whoever takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from parallelrun_core.code.folder import FilesBelow, files_below
from parallelrun_core.code.snapshots import MAX_BYTES, MAX_FILES, Limits, store_files
from parallelrun_core.errors import InvalidInput, Problem

IGNORE_FILE: Final = ".dockerignore"
CONTEXT: Final = Limits(
    what="what the image is built of",
    pointer="/environment/build/path",
    hint=f"a line in {IGNORE_FILE} at the top of that folder leaves out what its Dockerfile doesn't copy",
    files=MAX_FILES,
    bytes=MAX_BYTES,
)
_PIECES: Final = re.compile(r"\*\*/|\*\*|\*|\?|\\.|\[[^\]]+\]|.", re.DOTALL)
_WILD: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class DockerIgnore:
    """What a `.dockerignore` leaves out, as Docker reads it: the last line that fits a path, or a folder above it,
    decides. The Dockerfile is always taken.

    Args:
        lines: of the file.
        dockerfile: the path of the Dockerfile.
    """

    def __init__(self, lines: Iterable[str], dockerfile: str) -> None:
        self._dockerfile = dockerfile
        self._rules = [_rule(line.strip()) for line in lines if line.strip() and not line.startswith("#")]
        self._has_exceptions = any(not leaves_out for _, leaves_out in self._rules)

    def match_file(self, file: str) -> bool:
        """Whether this is left out; a folder, with a `/` at its end, only if nothing in it may be taken."""
        if file.endswith("/") and (self._has_exceptions or self._dockerfile.startswith(file)):
            return False
        path = file.rstrip("/")
        if path == self._dockerfile:
            return False
        parts = path.split("/")
        above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        is_left_out = False
        for pattern, leaves_out in self._rules:
            if leaves_out is not is_left_out and any(map(pattern.fullmatch, above)):
                is_left_out = leaves_out
        return is_left_out


def _rule(line: str) -> tuple[re.Pattern[str], bool]:
    """The paths that a line fits, and whether they are left out."""
    leaves_out = not line.startswith("!")
    parts = [part for part in line.removeprefix("!").strip().split("/") if part not in ("", ".")]
    text = "".join(map(_expression, _PIECES.findall("/".join(parts))))
    try:
        return re.compile(text, re.DOTALL), leaves_out
    except re.error as error:
        raise InvalidInput.at(CONTEXT.pointer, f"{IGNORE_FILE}: {line[:200]!r} is no pattern: {error}") from error


def _expression(piece: str) -> str:
    if piece in _WILD:
        return _WILD[piece]
    if piece.startswith("[") and len(piece) > 1:
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{inside}]"
    return re.escape(piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece)


def context_files(folder: Path, dockerfile: str) -> FilesBelow:
    """The files of which an image is built.

    Raises:
        InvalidInput: there is no such folder or no such Dockerfile in it; a link leads out of it; a line of its ignore
            file is no pattern.
    """
    if not folder.is_dir():
        raise InvalidInput.at(CONTEXT.pointer, f"there is no folder {str(folder)!r}")
    if not (folder / dockerfile).is_file():
        raise without_dockerfile(dockerfile)
    try:
        lines = (folder / IGNORE_FILE).read_text(errors="replace").splitlines()
    except (FileNotFoundError, IsADirectoryError):
        lines = []

    def located(problem: Problem) -> Problem:
        message = problem.message.replace("the code folder", "that folder")
        return replace(problem, pointer=CONTEXT.pointer, message=message, hint=CONTEXT.hint)

    try:
        yield from files_below(folder, DockerIgnore(lines, dockerfile))
    except InvalidInput as error:
        error.replace_problems(located)
        raise


def without_dockerfile(dockerfile: str) -> InvalidInput:
    """The error for a folder that lacks its Dockerfile."""
    return InvalidInput.at(
        "/environment/build/dockerfile_path", f"there is no file {dockerfile!r} in the folder that `path` names"
    )


def snapshot_context(folder: Path, dockerfile: str, store: Path) -> str:
    """Copy what an image is built of into a store; returns the snapshot's name.

    Raises:
        InvalidInput: as `context_files` says; or it is over a limit.
    """
    return store_files(context_files(folder, dockerfile), store, CONTEXT)
