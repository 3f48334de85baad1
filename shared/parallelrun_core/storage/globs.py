"""Glob patterns, as inputs are given by them: `*`, `?` and `[…]` match within one name, `**` any number of folders.

A name that begins with a dot is a name like any other. Everybody who asks what a pattern matches asks here: the checks
at submission, the listing, MLTable files, and the client.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from pathlib import PurePosixPath
from typing import Final

States = frozenset[int]
"""How many names of a pattern have matched on the way to a folder; there is more than one way through a `**`."""

START: Final[States] = frozenset({0})
_WILDCARD: Final = re.compile(r"[*?\[]")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def has_wildcard(path: str) -> bool:
    """Return whether a path may be a pattern. A file or folder of exactly this name comes first."""
    return _WILDCARD.search(path) is not None


def split_pattern(path: str) -> tuple[str, list[str]]:
    """The folder before the first name with a wildcard, and the names from there on; without one, the path and none."""
    scheme = _SCHEME.match(path)
    names = PurePosixPath(path[scheme.end() :] if scheme else path).parts
    first = next((index for index, name in enumerate(names) if has_wildcard(name)), len(names))
    start = str(PurePosixPath(*names[:first]))
    return scheme[0] + start if scheme else start, list(names[first:])


def split_existing(path: str) -> tuple[str, list[str]]:
    """Split a path as `split_pattern` does, but where a file or folder has exactly a name, that name is no pattern."""
    if not has_wildcard(path) or os.path.lexists(path):
        return path, []
    start, names = split_pattern(path)
    while names and os.path.lexists(below := str(PurePosixPath(start, names[0]))):
        start, names = below, names[1:]
    first = next((index for index, name in enumerate(names) if has_wildcard(name)), len(names))
    return str(PurePosixPath(start, *names[:first])), names[first:]


def as_literal(path: str) -> str:
    """Return the pattern that matches a name with `[` in it, and nothing else."""
    return path.replace("[", "[[]")


class Pattern:
    """A glob below a folder, matched one name at a time, so that only folders are entered that can hold a match.

    Args:
        names: those on the way from the folder, with their wildcards.
        is_named: tells which names a wildcard at the beginning doesn't match, as it is with a dot in a shell; None: it
            matches all.
    """

    def __init__(self, names: Sequence[str], is_named: Callable[[bytes], bool] | None = None) -> None:
        self._names = [None if name == "**" else re.compile(translate(name)) for name in names]
        self._is_named = is_named
        self._begins_open = [name[:1] in ("*", "?") for name in names]

    def enter(self, states: States, name: bytes) -> States:
        """The states after going into a folder; none when nothing below it can match."""
        after = set()
        for state in self._reachable(states):
            if state >= len(self._names):
                continue
            expression = self._names[state]
            if self._must_be_named(state, name):
                continue
            if expression is None:
                after.add(state)
            elif expression.match(os.fsdecode(name)):
                after.add(state + 1)
        return frozenset(after)

    def is_match(self, states: States, name: bytes) -> bool:
        """Return whether a file of this name matches to the end."""
        last = len(self._names) - 1
        for state in self._reachable(states):
            if state == last and not self._must_be_named(state, name):
                expression = self._names[state]
                if expression is None or expression.match(os.fsdecode(name)):
                    return True
        return False

    def _must_be_named(self, state: int, name: bytes) -> bool:
        return self._is_named is not None and self._begins_open[state] and self._is_named(name)

    def is_possible_below(self, folders: Iterable[str]) -> bool:
        """Return whether anything below a folder can match; the folder is given by the names on the way to it."""
        states = START
        for name in folders:
            states = self.enter(states, os.fsencode(name))
        return any(state < len(self._names) for state in states)

    def _reachable(self, states: States) -> set[int]:
        """The states, and those after a `**`, which may match nothing."""
        reachable = set(states)
        for state in states:
            following = state
            while following < len(self._names) and self._names[following] is None:
                following += 1
                reachable.add(following)
        return reachable
