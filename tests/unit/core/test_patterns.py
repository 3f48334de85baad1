"""Where a pattern's wildcards begin."""

from __future__ import annotations

import pytest

from parallelrun_core.patterns import split_pattern


@pytest.mark.parametrize(
    "path, root, pattern",
    [
        ("/a/b*/c", "/a", ["b*", "c"]),
        ("/*", "/", ["*"]),
        ("*.txt", ".", ["*.txt"]),
        ("a/**/x", "a", ["**", "x"]),
        ("/a//b/./[c]", "/a/b", ["[c]"]),
        ("/a/b", "/a/b", []),
    ],
)
def test_a_pattern_begins_at_the_first_wildcard(path: str, root: str, pattern: list[str]) -> None:
    assert split_pattern(path) == (root, pattern)
