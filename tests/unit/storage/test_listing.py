"""Listing real folders: every file once, in the order of whole paths, whatever the names and links are."""

from __future__ import annotations

import fnmatch
import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.interface import Listing
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.stores import storage_of
from tests.unit.storage.trees import make, pattern_names, trees


def paths(path: str | Path) -> list[bytes]:
    return in_full(storage_of(str(path)).files(str(path)))


def in_full(listing: Listing) -> list[bytes]:
    return [os.path.join(folder, name) for folder, names in listing for name in names]


@given(tree=trees)
@settings(deadline=None, max_examples=30)
def test_every_file_comes_once_in_the_order_of_whole_paths(tree: set[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = make(Path(name), tree)
        assert paths(name) == sorted(made)
        assert paths(name + "/") == sorted(made)


@given(tree=trees)
@settings(deadline=None, max_examples=30)
def test_a_folder_that_is_too_large_to_be_sorted_loses_nothing(tree: set[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = make(Path(name), tree)
        assert sorted(in_full(LocalListing(name, sorted_up_to=1, page=2))) == sorted(made)


def oracle(root: Path, pattern: list[str], made: list[bytes]) -> list[bytes]:
    """Matching as slowly and plainly as can be."""

    def matches(segments: list[str], parts: list[str]) -> bool:
        if not segments:
            return not parts
        if segments[0] == "**":
            if len(segments) == 1:
                return len(parts) >= 1
            return any(matches(segments[1:], parts[skip:]) for skip in range(len(parts)))
        return bool(parts) and fnmatch.fnmatchcase(parts[0], segments[0]) and matches(segments[1:], parts[1:])

    return sorted(
        path for path in made if matches(pattern, os.fsdecode(os.path.relpath(path, os.fsencode(root))).split("/"))
    )


@given(
    tree=trees,
    pattern=st.lists(
        pattern_names,
        min_size=1,
        max_size=4,
    ).filter(lambda segments: any(set(segment) & set("*?[") for segment in segments[:2])),
)
@settings(deadline=None, max_examples=80)
def test_patterns_match_as_a_naive_oracle_says(tree: set[tuple[str, ...]], pattern: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        made = make(root, tree)
        if not set(pattern[0]) & set("*?["):
            assume(not (root / pattern[0]).is_file())
            (root / pattern[0]).mkdir(exist_ok=True)  # so that the folder in front of the first wildcard is there
        assert paths("/".join([name, *pattern])) == oracle(root, pattern, made)


@pytest.mark.parametrize(
    "pattern, found",
    [("?", ["a", "é"]), ("[é]", ["é"]), ("[!a]", ["é"]), ("é*", ["é", "é1"]), ("*1", ["é1"]), ("[b-ÿ]", ["é"])],
)
def test_a_wildcard_stands_for_a_character_and_not_for_a_byte(tmp_path: Path, pattern: str, found: list[str]) -> None:
    for name in ("a", "é", "é1"):
        (tmp_path / name).touch()
    assert paths(tmp_path / pattern) == [os.fsencode(tmp_path / name) for name in found]


def test_fifty_thousand_and_one_entries_stream_in_the_order_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "sub").mkdir()
    (folder / "sub" / "last").touch()
    handle = os.open(folder, os.O_RDONLY)
    os.close(os.open("f0", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    # Hard links are the quickest way to many names, but a file has at most 65,000 of them.
    for number in range(1, 50_000):
        os.link("f0", f"f{number}", src_dir_fd=handle, dst_dir_fd=handle)
    os.close(handle)
    exact = LocalListing(str(folder / ".."))
    list(exact)
    large = LocalListing(str(folder))
    found = [os.path.join(where, name) for where, names in large for name in names]
    assert len(found) == len(set(found)) == 50_001
    assert not large.is_sorted
    assert found[-1] == os.fsencode(folder / "sub" / "last")
    (folder / "f1").unlink()
    small = LocalListing(str(folder))
    assert sum(len(names) for _, names in small) == 50_000
    assert small.is_sorted


def test_one_file_is_itself(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert paths(tmp_path / "x") == [os.fsencode(tmp_path / "x")]


def test_a_name_with_wildcards_that_is_there_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "[a]").mkdir()
    (tmp_path / "[a]" / "x*").touch()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "y").touch()
    assert paths(tmp_path / "[a]") == [os.fsencode(tmp_path / "[a]" / "x*")]
    assert paths(tmp_path / "[a]" / "x*") == [os.fsencode(tmp_path / "[a]" / "x*")]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    for path in ("missing", "missing/*", "missing/x"):
        with pytest.raises(FileNotFoundError):
            paths(tmp_path / path)


def test_empty_folders_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert paths(tmp_path) == []
    assert paths(tmp_path / "*") == []


# Links


def test_links_are_followed_and_come_under_their_own_names(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "x").touch()
    (root / "link").symlink_to("real")
    (root / "file").symlink_to("real/x")
    assert paths(root) == [os.fsencode(root / name) for name in ("file", "link/x", "real/x")]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "b").symlink_to("../b")
    (tmp_path / "b" / "a").symlink_to("../a")
    found = [os.path.relpath(os.fsdecode(path), tmp_path) for path in paths(tmp_path)]
    assert found == ["a/b/x", "a/x", "b/a/x", "b/x"]
    assert paths(tmp_path / "**" / "x") == paths(tmp_path)


def test_a_link_that_leads_nowhere_is_a_file_for_the_script_to_complain_about(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("missing")
    assert paths(tmp_path) == [os.fsencode(tmp_path / "broken")]


def test_a_link_to_itself_is_as_one_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "good").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert paths(tmp_path) == [os.fsencode(tmp_path / "good"), os.fsencode(tmp_path / "loop")]


def test_pipes_and_sockets_hold_no_data_and_whoever_reads_them_may_wait_for_ever(tmp_path: Path) -> None:
    (tmp_path / "good").touch()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
    assert paths(tmp_path) == [os.fsencode(tmp_path / "good")]
    assert in_full(LocalListing(str(tmp_path), sorted_up_to=0)) == [os.fsencode(tmp_path / "good")]
    with pytest.raises(InvalidInput, match="neither a file nor a folder"):
        paths(tmp_path / "pipe")


# Files that come and go


def test_files_that_come_and_go_while_listing_change_nothing_else(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    pages = iter(LocalListing(str(tmp_path)))
    listed = [next(pages)]
    (tmp_path / "c" / "x").unlink()
    (tmp_path / "c" / "y").touch()
    (tmp_path / "a" / "late").touch()
    listed += pages
    assert listed == [(os.fsencode(tmp_path / name), [file]) for name, file in (("a", b"x"), ("b", b"x"), ("c", b"y"))]


def test_a_folder_that_goes_while_listing_is_as_files_that_go(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    pages = iter(LocalListing(str(tmp_path)))
    listed = [next(pages)]
    (tmp_path / "b" / "x").unlink()
    (tmp_path / "b").rmdir()
    listed += pages
    assert listed == [(os.fsencode(tmp_path / name), [b"x"]) for name in ("a", "c")]
