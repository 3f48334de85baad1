"""Zips from outside: whatever is in them, they are stored whole below their folder, or refused and leave nothing."""

from __future__ import annotations

import io
import os
import stat
import threading
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parallelrun_core.code import snapshots
from parallelrun_core.code.snapshots import snapshot_folder, snapshot_zip
from parallelrun_core.errors import InvalidInput, UnsafePath
from tests.unit.core.factories import names_in


def archive(*members: tuple[str, bytes], mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with these members, whatever their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = method
            file.writestr(info, data)
    return out.getvalue()


def store(data: bytes, where: Path) -> str:
    return snapshot_zip(io.BytesIO(data), where)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def snapshots_in(folder: Path) -> list[str]:
    """The names in a store, which has a list of files beside each snapshot."""
    names = names_in(folder)
    assert {f"{name}.files" for name in names if "." not in name} == {name for name in names if "." in name}
    return [name for name in names if "." not in name]


# What is good


def test_a_zip_becomes_a_folder_named_by_its_content(tmp_path: Path) -> None:
    name = store(archive(("score.py", b"x = 1\n"), ("lib/util.py", b"y"), ("data/", b"")), tmp_path / "code")
    assert len(name) == 64
    assert snapshots_in(tmp_path / "code") == [name]
    assert tree(tmp_path / "code" / name) == {"score.py": b"x = 1\n", "lib/util.py": b"y"}


def test_the_same_content_has_the_same_name_whatever_way_it_came(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    (folder / "lib").mkdir(parents=True)
    (folder / "score.py").write_bytes(b"x = 1\n")
    (folder / "lib" / "util.py").write_bytes(b"y")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "score.pyc").write_bytes(os.urandom(20))
    names = {
        snapshot_folder(folder, tmp_path / "code"),
        store(archive(("lib/util.py", b"y"), ("score.py", b"x = 1\n")), tmp_path / "code"),
        store(archive(("score.py", b"x = 1\n"), ("./lib/util.py", b"y"), method=zipfile.ZIP_STORED), tmp_path / "code"),
        store(archive(("score.py", b"x = 1\n"), ("lib/util.py", b"y"), (".git/config", b"z")), tmp_path / "code"),
    }
    assert len(names) == 1
    assert len(snapshots_in(tmp_path / "code")) == 1


@pytest.mark.parametrize(
    "members",
    [
        [("score.py", b"x = 2\n"), ("lib/util.py", b"y")],
        [("score.py", b"x = 1\n")],
        [("score2.py", b"x = 1\n"), ("lib/util.py", b"y")],
        [("score.py", b"x = 1\n"), ("util.py", b"y")],
        [("score.py", b"y"), ("lib/util.py", b"x = 1\n")],
    ],
)
def test_other_content_has_another_name(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    first = store(archive(("score.py", b"x = 1\n"), ("lib/util.py", b"y")), tmp_path)
    assert store(archive(*members), tmp_path) != first


def test_what_may_be_run_stays_so_and_nothing_worse(tmp_path: Path) -> None:
    plain = store(archive(("run.sh", b"x"), mode=0o100600), tmp_path)
    runnable = store(archive(("run.sh", b"x"), mode=0o107777), tmp_path)
    assert plain != runnable
    assert stat.S_IMODE((tmp_path / plain / "run.sh").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / runnable / "run.sh").stat().st_mode) == 0o555
    assert stat.S_IMODE((tmp_path / runnable).stat().st_mode) == 0o755


def test_many_who_store_the_same_at_the_same_time_all_succeed(tmp_path: Path) -> None:
    data = archive(*((f"f{number}.py", b"x" * 1000) for number in range(20)))
    names: list[str] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait(20)
        names.append(store(data, tmp_path / "code"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(names) == 8
    assert snapshots_in(tmp_path / "code") == [names[0]]
    assert set(names) == {names[0]}
    assert len(tree(tmp_path / "code" / names[0])) == 20


# What is evil

EVIL_NAMES = [
    "../x", "a/../../x", "/etc/x", "//x", "a/../b", "..", "a\\..\\x", "C:\\x", "a\nb", "x" * 256, "a/" * 40 + "x",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafePath):
        store(archive(("good.py", b"x"), (name, b"evil")), tmp_path / "a" / "code")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert names_in(tmp_path / "a" / "code") == []


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path, kind: int) -> None:
    with pytest.raises(UnsafePath):
        store(archive(("link", b"/etc/passwd"), mode=kind | 0o777), tmp_path)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("names", [("a.py", "a.py"), ("A.py", "a.py"), ("d/x", "D/X"), ("a.py", "./a.py"), ("ß", "SS")])
def test_what_comes_twice_is_refused_letter_case_aside(tmp_path: Path, names: tuple[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library that makes the zip sees it, too
        data = archive(*((name, b"x") for name in names))
    with pytest.raises(UnsafePath, match="comes twice"):
        store(data, tmp_path)
    assert names_in(tmp_path) == []


def test_what_lies_too_deep_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(UnsafePath, match="folders deep"):
        store(archive(("a/" * 32 + "x", b"")), tmp_path)
    assert store(archive(("a/" * 31 + "x", b"")), tmp_path)


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b"), ("/".join(["d" * 250] * 20), "a")])
def test_members_that_cannot_lie_on_a_disk_together_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput):
        store(archive(*((name, b"x") for name in names)), tmp_path)
    assert names_in(tmp_path) == []


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"200:1"):
        store(archive(("bomb", bytes(20 << 20))), tmp_path)
    assert names_in(tmp_path) == []


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive(("bomb", bytes(4 << 20))))
    size = (4 << 20).to_bytes(4, "little")
    data = bytearray(bytes(data).replace(size, (1000).to_bytes(4, "little")))
    with pytest.raises(InvalidInput):
        store(bytes(data), tmp_path)
    assert names_in(tmp_path) == []


def test_the_sum_of_all_members_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "CODE", replace(snapshots.CODE, bytes=3 << 20))
    with pytest.raises(InvalidInput, match="3 MiB"):
        store(archive(*((f"f{number}", bytes(1 << 20)) for number in range(4))), tmp_path)
    assert names_in(tmp_path) == []
    assert store(archive(*((f"f{number}", bytes(1 << 20)) for number in range(3))), tmp_path)


def test_the_number_of_members_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "CODE", replace(snapshots.CODE, files=10))
    assert store(archive(*((f"f{number}", b"") for number in range(10))), tmp_path)
    with pytest.raises(InvalidInput, match="10"):
        store(archive(*((f"f{number}", b"") for number in range(11))), tmp_path)
    folder = tmp_path / "src"
    folder.mkdir()
    for number in range(11):
        (folder / f"f{number}").touch()
    with pytest.raises(InvalidInput, match="10"):
        snapshot_folder(folder, tmp_path / "other")
    assert names_in(tmp_path / "other") == []


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x03\x04", b"PK\x05\x06" + bytes(18) + b"x" * 30])
def test_what_is_no_zip_is_told_as_such_or_empty(tmp_path: Path, data: bytes) -> None:
    try:
        name = store(data, tmp_path)
    except InvalidInput:
        assert names_in(tmp_path) == []
    else:
        assert tree(tmp_path / name) == {}


def test_an_encrypted_member_is_told_as_such(tmp_path: Path) -> None:
    data = bytearray(archive(("a.py", b"x = 1")))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidInput):
        store(bytes(data), tmp_path)


GOOD = archive(("score.py", b"def run(mini_batch):\n    return mini_batch\n" * 5), ("lib/é.py", b"x"))


@given(
    changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, len(GOOD)) | st.just(len(GOOD)),
)
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_zip_that_was_damaged_anywhere_is_refused_or_stored_never_an_error_of_ours(
    tmp_path: Path, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(GOOD)
    for at, value in changes:
        data[at] = value
    with suppress(InvalidInput):
        store(bytes(data[:cut]), tmp_path / "code")
    assert list(tmp_path.glob("code/.*")) == []


@given(
    members=st.dictionaries(
        st.text("ab./\\AB é~:", min_size=1, max_size=8), st.binary(max_size=10), min_size=1, max_size=5
    )
)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_members_of_any_name_lie_below_the_snapshot_or_are_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    where = tmp_path / "store"
    try:
        name = store(archive(*members.items()), where)
    except InvalidInput:
        pass
    else:
        files = {key: data for key, data in members.items() if not key.endswith("/")}
        assert sorted(tree(where / name).values()) == sorted(files.values())
    assert names_in(tmp_path) in ([], ["store"])


# Folders


def test_a_folder_that_is_missing_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no folder"):
        snapshot_folder(tmp_path / "missing", tmp_path / "code")


def test_links_within_the_folder_are_followed_and_others_refused(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "real.py").write_text("x")
    (folder / "link.py").symlink_to("real.py")
    name = snapshot_folder(folder, tmp_path / "code")
    assert tree(tmp_path / "code" / name) == {"real.py": b"x", "link.py": b"x"}
    assert not (tmp_path / "code" / name / "link.py").is_symlink()
    (folder / "out.py").symlink_to("/etc/hostname")
    with pytest.raises(UnsafePath, match=r"out\.py"):
        snapshot_folder(folder, tmp_path / "code")


def test_a_linked_subfolder_within_the_folder_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    (folder / "v1").mkdir(parents=True)
    (folder / "v1" / "lib.py").write_text("x")
    (folder / "current").symlink_to("v1")
    name = snapshot_folder(folder, tmp_path / "code")
    assert tree(tmp_path / "code" / name) == {"v1/lib.py": b"x", "current/lib.py": b"x"}


def test_a_linked_subfolder_to_outside_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "out").symlink_to("/etc")
    with pytest.raises(UnsafePath):
        snapshot_folder(folder, tmp_path / "code")


def test_the_store_itself_is_left_out_when_it_lies_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text("x")
    first = snapshot_folder(tmp_path, tmp_path / "data" / "code", leave_out=tmp_path / "data")
    assert snapshot_folder(tmp_path, tmp_path / "data" / "code", leave_out=tmp_path / "data") == first
    assert tree(tmp_path / "data" / "code" / first) == {"score.py": b"x"}
