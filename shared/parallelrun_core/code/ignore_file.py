"""Reads the ignore file of a folder that somebody may have made to harm who reads it."""

from __future__ import annotations

import os
import re
import stat
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.untrusted.paths import opened_path

_MAX_BYTES: Final = 64 << 10
_MOST_WILD: Final = 3
"""Wildcards in one name, and folders of any depth in one line: what it takes to try a pattern grows with their power,
and while it is tried nothing else runs in this process."""
_STARS: Final = re.compile(r"\*+")


def ignore_lines(top: int, name: str, pointer: str) -> list[str] | None:
    """The lines of an ignore file; None: there is none.

    Args:
        top: the folder, open.
        pointer: where errors are, in the document of the job.

    Raises:
        InvalidInput: it is no plain file of this folder, it is too large, or a line has too many wildcards.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=top)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput.at(pointer, f"{name} can't be read: {error.strerror}") from error
    with open(fd, "rb") as file:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode) or not opened_path(fd).is_relative_to(opened_path(top)):
            raise InvalidInput.at(pointer, f"{name} is no file of that folder", "put a plain file there")
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidInput.at(pointer, f"{name} has more than {_MAX_BYTES >> 10} KiB")
    lines = content.decode(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            _check(line, f"line {number} of {name}", pointer)
    return lines


def _check(line: str, where: str, pointer: str) -> None:
    stars = [_STARS.findall(part) for part in line.split("/")]
    if any(len(each) > _MOST_WILD for each in stars) or sum("**" in run for each in stars for run in each) > _MOST_WILD:
        message = f"{where} has more than {_MOST_WILD} `*` in one name, or more than {_MOST_WILD} `**`"
        raise InvalidInput.at(pointer, message, "write it as several lines")
