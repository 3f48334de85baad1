"""What is said at submission about paths that can't be read or written; an input is seen as it will be listed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.storage.interface import PathProblem
from parallelrun_core.storage.local.checks import input_trouble
from parallelrun_core.storage.local.listing import LocalListing
from parallelrun_core.storage.stores import storage_of
from tests.unit.storage.trees import make, pattern_names, trees

NOBODY = 65534


def trouble_with(path: str | Path, *, is_one_file: bool = False) -> PathProblem | None:
    return storage_of(str(path)).input_trouble(str(path), is_one_file=is_one_file)


def has_file(path: Path) -> bool:
    return trouble_with(path) is None


def test_files_behind_links_to_folders_count(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "file").touch()
    links = tmp_path / "links"
    links.mkdir()
    assert not has_file(links)
    (links / "one").symlink_to(tmp_path / "data")
    assert has_file(links)


def test_links_that_lead_back_end_the_search(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "up").symlink_to(tmp_path)
    trouble_with(tmp_path)


@pytest.mark.parametrize("target", ["loop", "nowhere"])
def test_a_link_that_leads_nowhere_or_to_itself_is_listed_as_a_file(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / target)
    assert has_file(tmp_path)


@given(tree=trees, pattern=st.lists(pattern_names, min_size=1, max_size=3))
@settings(deadline=None, max_examples=60)
def test_an_input_is_refused_exactly_if_its_listing_would_be_empty(
    tree: set[tuple[str, ...]], pattern: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), tree)
        path = "/".join([name, *pattern])
        try:
            is_empty = not list(storage_of(path).files(path))
        except OSError:
            is_empty = True
        assert (trouble_with(path) is not None) == is_empty


@pytest.mark.parametrize(
    "path, told",
    [
        ("gone", "there is no file or folder '{}/gone'"),
        ("gone/*.txt", "there is no file or folder '{}/gone'"),
        ("file/*.txt", "there is no folder '{}/file'"),
        ("file/below", "there is no file or folder '{}/file/below'"),
        ("empty", "the folder '{}/empty' has no files"),
        ("*.csv", "no file matches '{}/*.csv'"),
        ("empty/**", "no file matches '{}/empty/**'"),
        ("pipe", "'{}/pipe' is neither a file nor a folder"),
    ],
)
def test_an_input_without_a_file_is_refused_with_the_reason(tmp_path: Path, path: str, told: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    trouble = trouble_with(tmp_path / path)
    assert trouble is not None
    assert trouble.message == told.format(tmp_path)


def test_a_folder_is_no_single_file_but_a_pattern_may_match_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    trouble = trouble_with(tmp_path, is_one_file=True)
    assert trouble == PathProblem(f"{str(tmp_path)!r} is a folder", "type: uri_folder")
    assert trouble_with(tmp_path / "*.txt", is_one_file=True) is None


@pytest.mark.parametrize("pattern", ["*", "d*", "data", "*/", "**/deep"])
def test_a_pattern_that_matches_only_folders_says_which_and_what_to_write(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "file").touch()
    trouble = trouble_with(f"{tmp_path}/{pattern}")
    if pattern == "data":  # no pattern
        assert trouble is None
        return
    given = f"{tmp_path}/{pattern}"
    where = tmp_path / "data" / "deep" if pattern == "**/deep" else tmp_path / "data"
    assert trouble is not None
    assert trouble.message == f"{given!r} matches no file, only folders such as {str(where)!r}"
    wanted = given.rstrip("/") + "/**"
    assert trouble.hint == f"for all files below such folders, give {wanted!r}"
    assert trouble_with(wanted) is None


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, who may do everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Outside of pytest's own folders, which only their owner may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        (Path(name) / "closed" / "in").mkdir(parents=True)
        (Path(name) / "closed" / "in" / "file").touch()
        yield Path(name)
        (Path(name) / "closed").chmod(0o755)


@pytest.mark.parametrize(
    "closes, below, told, right",
    [
        ("closed", "closed/in", "may not enter the folder '{}/closed'", "o+x"),
        ("closed", "closed/in/file", "may not enter the folder '{}/closed'", "o+x"),
        ("closed", "closed/in/*", "may not enter the folder '{}/closed'", "o+x"),
        ("closed", "closed", "may not list the folder '{}/closed'", "o+rx"),
    ],
)
def test_who_may_not_read_which_folder_is_said(folder: Path, closes: str, below: str, told: str, right: str) -> None:
    (folder / closes).chmod(0)
    try:
        with as_nobody():
            uid = os.geteuid()
            trouble = trouble_with(folder / below)
    finally:
        (folder / closes).chmod(0o755)
    assert trouble is not None
    assert trouble.message.startswith(f"'{folder}/{below}' can't be read: permission denied")
    assert f"(uid {uid})" in trouble.message
    assert trouble.message.endswith(told.format(folder))
    assert f"chmod {right} {folder}/{closes}" in trouble.hint


@pytest.mark.parametrize("below", ["closed", "*/*/*", "**/file"])
def test_a_closed_folder_below_the_input_is_left_to_who_lists_it(folder: Path, below: str) -> None:
    (folder / "closed" / "in").chmod(0)
    try:
        with as_nobody():
            trouble = trouble_with(folder / below)
            with pytest.raises(PermissionError, match=rf"denied: '{folder}/closed/in'$"):
                list(LocalListing(str(folder)))
    finally:
        (folder / "closed" / "in").chmod(0o755)
    assert trouble is None


@pytest.mark.parametrize("names", [["a/b/c/d/e"], [f"{number}/x" for number in range(9)]])
def test_a_search_that_takes_too_long_is_left_to_who_lists_the_input(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    assert input_trouble(str(tmp_path), clock=lambda: 0.0) is not None
    assert input_trouble(str(tmp_path), clock=count().__next__) is None


def test_a_search_among_names_that_do_not_match_ends_in_time_too(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").touch()
    times = iter([0.0, 0.0, 3.0])
    assert input_trouble(f"{tmp_path}/*.csv", clock=times.__next__) is None


@pytest.mark.parametrize("make_it", [Path.mkdir, lambda _: None], ids=["there", "not there"])
def test_a_folder_for_outputs_must_be_one_that_can_be_written(
    tmp_path: Path, make_it: Callable[[Path], object]
) -> None:
    make_it(tmp_path / "out")
    storage = storage_of(str(tmp_path))
    assert storage.output_trouble(f"{tmp_path}/out") is None
    assert storage.output_trouble(f"{tmp_path}/out/x.csv", is_file=True) is None
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    (tmp_path / "out").touch()
    assert storage.output_trouble(f"{tmp_path}/out/x.csv", is_file=True) == PathProblem(
        f"'{tmp_path}/out' is not a folder"
    )
    assert storage.output_trouble(f"{tmp_path}/out/deeper") == PathProblem(f"'{tmp_path}/out' is not a folder")
