"""Patterns match what the documentation promises, and what people know from `glob`."""

from __future__ import annotations

import glob
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.storage.globs import START, Pattern, has_wildcard, split_existing, split_pattern
from tests.unit.storage.trees import make, pattern_names, trees


@pytest.mark.parametrize(
    "path, root, pattern",
    [
        ("/a/b*/c", "/a", ["b*", "c"]),
        ("/*", "/", ["*"]),
        ("*.txt", ".", ["*.txt"]),
        ("a/**/x", "a", ["**", "x"]),
        ("/a//b/./[c]", "/a/b", ["[c]"]),
        ("/a/b", "/a/b", []),
        ("s3://b/a*/c", "s3://b", ["a*", "c"]),
    ],
)
def test_a_pattern_begins_at_the_first_wildcard(path: str, root: str, pattern: list[str]) -> None:
    assert split_pattern(path) == (root, pattern)
    assert has_wildcard(path) == bool(pattern)


def test_what_has_exactly_this_name_is_no_pattern(tmp_path: Path) -> None:
    path = str(tmp_path / "a[1]")
    assert split_existing(path) == (str(tmp_path), ["a[1]"])
    Path(path).symlink_to("nowhere")
    assert split_existing(path) == (path, [])


def is_match(pattern: list[str], parts: list[str]) -> bool:
    """Whether a file on this way matches, asked as a listing asks: folder by folder."""
    matcher, states = Pattern(pattern), START
    for name in parts[:-1]:
        states = matcher.enter(states, os.fsencode(name))
    return matcher.is_match(states, os.fsencode(parts[-1]))


@given(tree=trees, pattern=st.lists(pattern_names, min_size=1, max_size=4))
@settings(deadline=None, max_examples=150)
def test_a_pattern_matches_the_files_that_glob_finds(tree: set[tuple[str, ...]], pattern: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        files = [os.path.relpath(os.fsdecode(path), name) for path in make(Path(name), tree)]
        by_glob = glob.glob("/".join(pattern), root_dir=name, recursive=True, include_hidden=True)  # noqa: PTH207 - Path.glob differs
        expected = {path for path in by_glob if os.path.isfile(os.path.join(name, path))}
        assert {path for path in files if is_match(pattern, path.split("/"))} == expected


@given(pattern=st.lists(pattern_names, min_size=1, max_size=4), tree=trees)
@settings(deadline=None, max_examples=150)
def test_no_folder_is_passed_over_in_which_something_matches(pattern: list[str], tree: set[tuple[str, ...]]) -> None:
    for parts in tree:
        if is_match(pattern, list(parts)):
            for depth in range(len(parts)):
                assert Pattern(pattern).is_possible_below(parts[:depth])


@pytest.mark.parametrize(
    "pattern, path, matches",
    [
        ("*.txt", "a.txt", True), ("*.txt", "d/a.txt", False), ("*/*.txt", "d/a.txt", True),
        ("**/*.txt", "a.txt", True), ("**/*.txt", "d/e/a.txt", True), ("**", "d/e/a.txt", True),
        ("d/**", "d/e/f", True), ("d/**", "e/f", False), ("**/e/*", "d/e/f", True), ("**/e/*", "d/f", False),
        ("?.csv", "é.csv", True), ("[a-c]", "b", True), ("[!a-c]", "b", False), ("[[]", "[", True),
        ("*", ".hidden", True), ("**", ".git/x", True), ("*.TXT", "a.txt", False), ("d", "d/e", False),
    ],
)  # fmt: skip
def test_the_promises_of_the_documentation(pattern: str, path: str, matches: bool) -> None:
    assert is_match(pattern.split("/"), path.split("/")) == matches
