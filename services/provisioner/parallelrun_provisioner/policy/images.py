"""Image references: the image that a name stands for, and whether nodes may have it.

Names are read as container engines read them: what is before the first `/` is a host if it can't be anything else (it
has a `.`, a `:` or an upper-case letter, or is `localhost`), and else the image is one of Docker Hub's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

HUB: Final = "docker.io"
_OFFICIAL: Final = "library/"
_PART: Final = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_WELL_FORMED: Final = re.compile(
    rf"(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?:@[a-z0-9]+:[0-9a-f]+)?"
)
_WILD: Final = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


class ImageReference(NamedTuple):
    """The name of an image, or a pattern for such names."""

    host: str
    """The host with its port, if one is given; `docker.io` if no host is."""
    path: str
    """On that host, as in `team/image`; of Docker's own images `library/image`."""
    version: str
    """`:tag`, `@digest`, or both; empty: none is given."""


def parse(name: str) -> ImageReference:
    """The image that this name stands for, or this pattern."""
    first, slash, rest = name.partition("/")
    is_host = bool(slash) and (any(sign in first for sign in ".:") or first == "localhost" or first != first.lower())
    host, whole = (host_of(first), rest) if is_host else (HUB, name)
    path, at, digest = whole.partition("@")
    folder, slash, last = path.rpartition("/")
    last, colon, tag = last.partition(":")
    path = f"{folder}{slash}{last}"
    if host == HUB and "/" not in path and "**" not in path:
        path = f"{_OFFICIAL}{path}"
    return ImageReference(host, path, f"{colon}{tag}{at}{digest}")


def host_of(name: str) -> str:
    """The host of images, by one of its names."""
    host = name.lower()
    return HUB if host == f"index.{HUB}" else host


def is_allowed(name: str, patterns: Iterable[str]) -> bool:
    """Return whether an image is one of those that the patterns allow.

    In a pattern, `*` stands for anything within one part of a path or of a host's name, and `**` for any number of
    parts of a path. A host is never left open: a pattern without one is about Docker Hub. Without a version, it allows
    all of them.
    """
    image = parse(name)
    return bool(_WELL_FORMED.fullmatch(name)) and any(_matches(image, parse(pattern)) for pattern in patterns)


def _matches(image: ImageReference, pattern: ImageReference) -> bool:
    if not _glob(pattern.host, within="[^./:]*").fullmatch(image.host):
        return False
    if not _glob(pattern.path).fullmatch(image.path):
        return False
    return not pattern.version or bool(_glob(pattern.version).fullmatch(image.version))


def _glob(pattern: str, *, within: str = "") -> re.Pattern[str]:
    """An expression for a pattern.

    Args:
        within: what all of `*` and `**` stand for; empty: as in a path.
    """
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return re.compile("".join((within or _WILD[part]) if part in _WILD else re.escape(part) for part in parts))
