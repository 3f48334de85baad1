"""Pages of files: together they are all there is, each once, in the order of their paths."""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_api.http.paging import encode_token
from parallelrun_api.views import files
from parallelrun_api.views.files import ServedFolder, ServedFolders, page, page_begin
from parallelrun_api.views.folder_names import MAX_NAMES, FolderNames
from parallelrun_core.errors import InvalidInput


def pages_of(served: ServedFolder | ServedFolders, between: Callable[[], object] = lambda: None) -> list[list[str]]:
    """The paths on all pages."""
    found, token = [], ""
    while True:
        answer = page(served, page_begin(token))
        found.append([entry.path for entry in answer.items])
        assert answer.truncated == (answer.next_page_token is not None)
        if answer.next_page_token is None:
            return found
        token = answer.next_page_token
        between()


def all_of(folder: Path, held: int = MAX_NAMES) -> ServedFolder:
    return ServedFolder(anchor=folder.parent, beneath=folder.name, names=FolderNames(held))


def make(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()


NAMES = st.sampled_from(["a", "a.b", "a-b", "a b", "b", "\u00fc", "\U0001f600", "\uffff", "z", "z.part"])


@settings(max_examples=60)
@given(st.sets(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=25), st.integers(1, 7), st.integers(1, 3))
def test_pages_hold_every_file_once_by_path(wanted: set[tuple[str, ...]], size: int, held: int) -> None:
    # A name is that of a file or that of a folder.
    paths = ["/".join(parts) for parts in wanted if not any(other[: len(parts)] == parts for other in wanted - {parts})]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        make(Path(folder), *paths)
        patch.setattr(files, "MAX_FILES", size)

        found = pages_of(all_of(Path(folder), held))

    assert [path for each in found for path in each] == sorted(paths)
    assert all(len(each) == size for each in found[:-1])


@pytest.mark.parametrize("count", [2, 3, 4, 6, 7])
@pytest.mark.parametrize("folder", ["", "in/"])
def test_a_page_is_one_look_at_each_folder_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, count: int
) -> None:
    size, looks, scan = 3, list[int](), os.scandir

    def counted(path: int) -> Any:
        looks.append(path)
        return scan(path)

    monkeypatch.setattr(files, "MAX_FILES", size)
    make(tmp_path, *(f"{folder}{number}" for number in range(count)))
    monkeypatch.setattr(os, "scandir", counted)

    # The names of a page, the one before it, and one that shows that another page follows.
    found = pages_of(all_of(tmp_path, size + 2))

    assert sum(map(len, found)) == count
    assert len(looks) == len(found) * (2 if folder else 1)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was changed, was changed some time ago."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 60_000_000_000)


@pytest.mark.usefixtures("later")
def test_the_pages_of_a_folder_that_nobody_changes_take_one_look_for_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, scan = list[int](), os.scandir

    def counted(path: int) -> Any:
        looks.append(path)
        return scan(path)

    monkeypatch.setattr(files, "MAX_FILES", 3)
    make(tmp_path, *(f"{number:03d}" for number in range(100)))
    monkeypatch.setattr(os, "scandir", counted)

    found = pages_of(all_of(tmp_path, 30))

    assert [path for each in found for path in each] == [f"{number:03d}" for number in range(100)]
    assert len(found) == 34
    assert len(looks) == 5


@pytest.mark.usefixtures("later")
@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=12), st.integers(5, 12))
def test_what_was_remembered_of_a_folder_is_forgotten_when_it_changes(
    changes: list[tuple[str, bool]], held: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MAX_FILES", 2)
        served = all_of(Path(folder), held)
        for number, (name, is_there) in enumerate(changes):
            if is_there:
                make(Path(folder), name)
            else:
                (Path(folder) / name).unlink(missing_ok=True)
            os.utime(folder, (number, number))  # the clock of a file system may not tell two changes apart
            found = [path for each in pages_of(served) for path in each]
            assert found == sorted(path.name for path in Path(folder).iterdir())


def test_what_comes_and_goes_meanwhile_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 2)
    make(tmp_path, "a", "b/1", "b/2", "b/3", "c", "d/1", "e")
    changes: list[Callable[[], object]] = [partial(make, tmp_path, "0", "b/9", "d/2"), (tmp_path / "b" / "1").unlink]

    found = pages_of(all_of(tmp_path), lambda: changes and changes.pop()())

    assert found == [["a", "b/1"], ["b/2", "b/3"], ["b/9", "c"], ["d/1", "d/2"], ["e"]]


def test_what_is_neither_file_nor_folder_does_not_end_a_list(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"a{number}").symlink_to("/etc")
        os.mkfifo(tmp_path / f"b{number}")
        (tmp_path / f"c{number}").mkdir()
        (tmp_path / f"d{number}\n").touch()
    make(tmp_path, "e")

    assert pages_of(all_of(tmp_path, 2)) == [["e"]]


def test_several_folders_are_one_list_and_the_first_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 2)
    make(
        tmp_path, "models/a", "models/b/c", "report/r.csv", "report/private", "own/models/a", "own/n", "own/models.txt"
    )
    (tmp_path / "models" / "a").write_text("the first")
    served = ServedFolders(
        (
            ServedFolder(anchor=tmp_path, beneath="models", name="models"),
            ServedFolder(anchor=tmp_path, beneath="report", only="r.csv", name="report"),
            ServedFolder(anchor=tmp_path, beneath="own"),
        )
    )

    assert pages_of(served) == [["models.txt", "models/a"], ["models/b/c", "n"], ["report/r.csv"]]
    assert next(islice(served.files("models.txt"), 1)).bytes == len("the first")


@pytest.mark.parametrize("after", ["../", "../secret", "./", "in/../../", "/etc/", "\0", "in//", "in/./a", "link/x"])
def test_a_token_of_somebodys_making_leads_nowhere(tmp_path: Path, after: str) -> None:
    make(tmp_path, "secret", "in/place/in/a", "z")
    (tmp_path / "in" / "place" / "link").symlink_to("..")

    found = page(ServedFolder(anchor=tmp_path, beneath="in/place"), page_begin(encode_token("files", after)))

    assert {entry.path for entry in found.items} <= {"in/a"}


@pytest.mark.parametrize("token", ["x", "eA", encode_token("jobs", "job_1"), encode_token("files")])
def test_a_token_of_another_list_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="not a token"):
        page_begin(token)
