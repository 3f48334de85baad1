"""The check of Dockerfiles: no URLs for `ADD`, which the Engine fetches itself, from the network of its machine.

Which lines are one depends on the escape character, and on the release of the builder. So a Dockerfile is read in each
of these ways, and refused if it is wrong in any. Where here-documents end depends on words with quotes and escapes: if
there may be any, each line is read as one with which an instruction begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from parallelrun_core.errors import InvalidInput

_ADD: Final = re.compile(r"(?:ONBUILD\s+)*ADD\s+(.*)", re.IGNORECASE | re.DOTALL)
_POINTER: Final = "/environment/build/dockerfile_path"
_MAX_BYTES: Final = 1 << 20
_MOST_LINES: Final = 20_000
_ADD_AHEAD: Final = re.compile(r" ?(?:ONBUILD )*ADD ", re.IGNORECASE)
_MOST_AHEAD: Final = 100
"""Characters that decide whether an instruction is `ADD`, runs of blanks as one."""


def check_dockerfile(content: bytes, name: str) -> None:
    """Make sure that a Dockerfile has nothing added from the network of the Engine's machine.

    Raises:
        InvalidInput: it has, what it adds can't be told, or it has more than 1 MiB or 20,000 lines.
    """
    if len(content) > _MAX_BYTES:
        raise InvalidInput.at(_POINTER, f"{name} has more than {_MAX_BYTES >> 20} MiB")
    text = content.decode(errors="replace").lstrip("\ufeff")
    if text.count("\n") > _MOST_LINES:
        raise InvalidInput.at(_POINTER, f"{name} has more than {_MOST_LINES:,} lines")
    for escape, is_doubled in product(("\\\\", "`"), (True, False)):
        end = re.compile(rf"{escape}[ \t]*$" if is_doubled else rf"(?<!{escape}){escape}[ \t]*$")
        for instruction in _instructions(text, end):
            added = _ADD.fullmatch(instruction)
            if added and _may_be_url(added[1]):
                raise _refusal(name, instruction)
        if text.count("<") > 1 and (line := _adding_line(text, end)):
            raise _refusal(name, line)


def _refusal(name: str, instruction: str) -> InvalidInput:
    return InvalidInput.at(
        _POINTER,
        f"{name}: {' '.join(instruction.split())[:200]!r} may name a URL, which the Engine would fetch",
        "fetch it with RUN, or put the file beside the Dockerfile and use COPY",
    )


def _adding_line(text: str, end: re.Pattern[str]) -> str:
    """Return a line with which an `ADD` of a URL would begin, wherever instructions begin; empty if there is none."""
    ahead, plain_ahead, has_url = "", "", False
    for line in reversed(text.split("\n")):
        if not line.strip() or line.strip().startswith("#"):
            continue  # none begins with these, and one goes on after them
        body = end.sub("", line.rstrip("\r"))
        plain = body.replace('"', "").replace("'", "")
        if not end.search(line.rstrip("\r")):
            ahead, plain_ahead, has_url = "", "", False
        has_url = has_url or _may_be_url(body) or _may_be_url(plain[-4:] + plain_ahead[:4])
        ahead = re.sub(r"\s+", " ", body + ahead)[:_MOST_AHEAD]
        plain_ahead = (plain + plain_ahead)[:_MOST_AHEAD]
        if has_url and _ADD_AHEAD.match(ahead):
            return line
    return ""


def _may_be_url(arguments: str) -> bool:
    """Return whether a builder may read a URL in this: quotes vanish, and escapes and variables become anything."""
    plain = arguments.replace('"', "").replace("'", "")
    return "://" in plain or "git@" in plain or any(char in plain for char in "$\\`")


def _instructions(text: str, end: re.Pattern[str]) -> Iterator[str]:
    begun = ""
    for line in text.split("\n"):
        if line.strip().startswith("#") or (begun and not line.strip()):
            continue
        begun += end.sub("", line.rstrip("\r"))
        if not end.search(line.rstrip("\r")):
            yield begun.strip()
            begun = ""
    yield begun.strip()
