"""Folders with files for the tests of storages."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import strategies as st

part = st.sampled_from(["a", "b", "ab", "a.txt", "b.txt", "a b", "a-", ".hid", "A", "é", "\udcff", "a\n", "x.csv"])
trees = st.sets(st.lists(part, min_size=1, max_size=4).map(tuple), max_size=8)
"""Files, each by the names on the way to it."""
pattern_names = st.sampled_from(
    ["*", "**", "a*", "*.txt", "?", "[ab]", "[!a]*", "ab", "a?", ".*", "?.csv", "[é]", "é", "**x", "[", "a[", "[]a]"]
)


def make(root: Path, tree: set[tuple[str, ...]]) -> list[bytes]:
    """Create these files, unless one would have to be a folder, too; returns what there is."""
    made = []
    for parts in sorted(tree, key=len, reverse=True):
        path = root.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(exist_ok=False)
        except OSError:
            continue
        made.append(os.fsencode(path))
    return made
