"""A path that somebody else chose never leaves its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.untrusted.paths import open_beneath, relative_parts, within
from tests.unit.core.factories import open_descriptors

EVIL = [
    "", "/", ".", "./", "..", "../x", "a/..", "a/../b", "a/../../b", "/etc/passwd", "//etc/passwd", "a\\b", "..\\x",
    "a\0b", "a\nb", "a\x7fb", "a/\x1b[31m", "x" * 256, "a/" + "é" * 128, "/..", "a/b/..",
]  # fmt: skip


@pytest.mark.parametrize("text", EVIL)
def test_what_could_leave_or_confuse_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnsafePath):
        relative_parts(text)
    with pytest.raises(UnsafePath):
        open_beneath(tmp_path, text)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("a", ("a",)),
        ("a/b.txt", ("a", "b.txt")),
        ("./a", ("a",)),
        ("a//b/", ("a", "b")),
        ("...", ("...",)),
        ("..a/b..", ("..a", "b..")),
        ("~/x", ("~", "x")),
        ("C:/x", ("C:", "x")),
        ("x" * 255, ("x" * 255,)),
        ("\udcff", ("\udcff",)),
    ],
)
def test_what_stays_below_is_taken_apart(text: str, parts: tuple[str, ...]) -> None:
    assert relative_parts(text) == parts


@given(text=st.text(st.characters(), max_size=30) | st.text("./\\a\0\ud800\udc80", max_size=8))
@settings(deadline=None, max_examples=300)
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    try:
        parts = relative_parts(text)
    except UnsafePath:
        return
    assert parts
    assert not any(part in {"", ".", ".."} or "/" in part or "\0" in part for part in parts)
    root = os.path.normpath(os.path.join("/root", *parts))
    assert root.startswith("/root/")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def make_tree(tmp_path: Path) -> Path:
    """A folder with a file at each level, and a secret beside it."""
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    for folder in (root, root / "a", root / "a" / "b"):
        (folder / "file").write_text("good")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    return root


def content(root: Path, relative: str) -> str:
    fd = open_beneath(root, relative)
    with os.fdopen(fd) as file:
        return file.read()


@pytest.mark.parametrize("relative", ["file", "a/file", "a/b/file", "./a//b/./file"])
def test_files_below_are_opened(tree: Path, relative: str) -> None:
    assert content(tree, relative) == "good"


@pytest.mark.parametrize("at", ["x", "a/x", "a/b/x"])
@pytest.mark.parametrize("inside", [True, False])
def test_no_link_is_followed_at_any_level(tree: Path, at: str, inside: bool) -> None:
    folder = tree / "a" if inside else tree.parent / "secret"
    (tree / at).symlink_to(folder)
    with pytest.raises(NotFound):
        open_beneath(tree, f"{at}/file")
    (tree / at).unlink()
    (tree / at).symlink_to(folder / "file")
    with pytest.raises(NotFound):
        open_beneath(tree, at)
    (tree / at).unlink()
    (tree / at).symlink_to(at.rpartition("/")[2])
    with pytest.raises(NotFound):
        open_beneath(tree, at)


@pytest.mark.parametrize("relative", ["nothing", "nothing/file", "file/below", "a/b/c/d"])
def test_what_is_not_there_is_told_as_such(tree: Path, relative: str) -> None:
    with pytest.raises(NotFound):
        open_beneath(tree, relative)


def test_a_root_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_beneath(tmp_path / "missing", "file")


def test_a_pipe_in_the_way_does_not_make_anybody_wait(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    os.close(open_beneath(tree, "pipe"))


def test_no_descriptor_is_left_open_and_none_is_inherited(tree: Path) -> None:
    before = len(open_descriptors())
    for relative in ("a/b/file", "nothing", "a/nothing/file", "file/below"):
        try:
            fd = open_beneath(tree, relative)
        except NotFound:
            continue
        assert not os.get_inheritable(fd)
        os.close(fd)
    assert len(open_descriptors()) == before


def test_within_follows_every_link_before_it_compares(tree: Path) -> None:
    secret = tree.parent / "secret"
    (tree / "out").symlink_to(secret)
    (tree.parent / "alias").symlink_to(tree)
    assert within(tree, [tree])
    assert within(tree / "a" / "b", [secret, tree])
    assert within(tree.parent / "alias" / "a", [tree])
    assert within(tree / "a", [tree.parent / "alias"])
    assert not within(tree / "out" / "file", [tree])
    assert not within(tree / ".." / "secret", [tree])
    assert not within(Path(f"{tree}-beside"), [tree])
    assert not within(tree, [])


def test_a_link_that_leads_to_itself_is_within_nothing(tree: Path) -> None:
    (tree / "loop").symlink_to("loop")
    assert not within(tree / "loop" / "x", [tree.parent / "secret"])
