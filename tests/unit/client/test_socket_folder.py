"""The folders of sockets: nothing of those who are killed stays, and nothing of those who live goes."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun.embedded.socket_folder import SocketFolder

OWNER = """
import os, subprocess, sys
from parallelrun.embedded.socket_folder import SocketFolder
folder = SocketFolder.create()
folder.socket.touch()
if "heir" in sys.argv:
    heir = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    subprocess.Popen(heir, stdin=int(sys.argv[2]), pass_fds=[folder.fd], stdout=subprocess.DEVNULL)
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for temporary files, of a length that sockets can do with."""
    with tempfile.TemporaryDirectory(prefix="pr-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)


def start_owner(*arguments: str, pass_fds: tuple[int, ...] = ()) -> tuple[subprocess.Popen[bytes], Path]:
    """A process that owns a folder, and that folder."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=pass_fds
    )
    assert owner.stdout is not None
    return owner, Path(os.fsdecode(owner.stdout.readline().strip()))


def leave_behind(path: Path) -> Path:
    """A folder of this name, as a cluster of this host leaves it that is killed before its server listens."""
    folder = SocketFolder.create()
    os.close(folder.fd)
    return folder.path.rename(path)


def test_a_folder_is_for_its_user_alone_and_goes_when_it_is_removed() -> None:
    folder = SocketFolder.create()
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.socket.touch()

    folder.remove()
    folder.remove()

    assert not folder.path.exists()


def test_what_a_killed_owner_left_is_removed_and_what_another_uses_is_not() -> None:
    (killed, left), (alive, used) = start_owner(), start_owner()
    with killed, alive:
        killed.kill()
        killed.wait()
        try:
            SocketFolder.create().remove()

            assert used.is_dir()
            assert not left.exists()
        finally:
            alive.kill()


def test_a_server_that_outlives_its_owner_still_owns_the_folder() -> None:
    read_end, write_end = os.pipe()
    owner, folder = start_owner("heir", str(read_end), pass_fds=(read_end,))
    with owner:
        owner.kill()
        owner.wait()
        SocketFolder.create().remove()
        assert folder.is_dir()

    os.close(read_end)
    os.close(write_end)  # at which the heir ends
    until_it_is_gone(folder)


def until_it_is_gone(folder: Path) -> None:
    """Wait for the end of its last owner."""
    deadline = time.monotonic() + 20
    while folder.exists():
        assert time.monotonic() < deadline
        SocketFolder.create().remove()


def test_a_folder_in_which_a_server_listens_is_in_use_whatever_its_lock_says(temporary: Path) -> None:
    folder = leave_behind(temporary / "parallelrun-abcd_123")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "redis.sock"))
        server.listen()

        SocketFolder.create().remove()

        assert (folder / "redis.sock").exists()
    SocketFolder.create().remove()
    assert not folder.exists()


@pytest.mark.parametrize("name", ["parallelrun-0-node1", "parallelrun-bench-abcd_123", "parallelrun-ABCD1234", "other"])
def test_folders_of_other_names_are_none_of_ours(temporary: Path, name: str) -> None:
    folder = leave_behind(temporary / name)

    SocketFolder.create().remove()

    assert folder.is_dir()


def test_a_folder_that_no_owner_has_marked_is_none_of_ours(temporary: Path) -> None:
    """An empty one of this user, or that of an older release whose server is about to listen."""
    folder = temporary / "parallelrun-examples"
    folder.mkdir()
    (temporary / "parallelrun-releases").mkdir()
    (temporary / "parallelrun-releases" / "redis.sock").touch()

    SocketFolder.create().remove()

    assert folder.is_dir()
    assert (temporary / "parallelrun-releases" / "redis.sock").exists()


@pytest.mark.parametrize("marker", [b"", b"\xff\xfe 1", b"elsewhere.example.com 1"])
def test_a_folder_whose_marker_does_not_name_this_host_is_none_of_ours(temporary: Path, marker: bytes) -> None:
    folder = leave_behind(temporary / "parallelrun-abcd_123")
    (folder / "owner").write_bytes(marker)

    SocketFolder.create().remove()

    assert (folder / "owner").exists()


def test_a_folder_of_another_host_is_none_of_ours(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = leave_behind(temporary / "parallelrun-abcd_123")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "gethostname", lambda: "elsewhere")
        SocketFolder.create().remove()

    assert folder.is_dir()
    SocketFolder.create().remove()
    assert not folder.exists()


def test_what_holds_more_than_a_socket_is_none_of_ours(temporary: Path) -> None:
    folder = leave_behind(temporary / "parallelrun-abcd_123")
    (folder / "diary.txt").touch()
    (temporary / "parallelrun-file_123").touch()
    leave_behind(temporary / "there")
    (temporary / "parallelrun-link_123").symlink_to(temporary / "there")

    SocketFolder.create().remove()

    assert sorted(path.name for path in temporary.iterdir()) == [
        "parallelrun-abcd_123", "parallelrun-file_123", "parallelrun-link_123", "there",
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == ["diary.txt", "owner"]
    assert (temporary / "there" / "owner").exists()


def test_a_folder_of_another_user_is_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = leave_behind(temporary / "parallelrun-abcd_123")
    real = os.geteuid()

    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: real + 1)
        SocketFolder.create().remove()

    assert folder.is_dir()


def test_a_cluster_leaves_the_folder_alone_that_another_has_just_made(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tempfile.mkdtemp
    made: list[str] = []

    def interrupted(*arguments: str, **options: str) -> str:
        made.append(real(*arguments, **options))
        monkeypatch.setattr(tempfile, "mkdtemp", real)
        SocketFolder.create().remove()
        return made[0]

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)

    folder = SocketFolder.create()

    assert folder.path.is_dir()
    assert [str(folder.path)] == made
    folder.remove()


def test_a_folder_that_an_older_release_has_removed_at_once_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tempfile.mkdtemp

    def interrupted(*arguments: str, **options: str) -> str:
        path = real(*arguments, **options)
        monkeypatch.setattr(tempfile, "mkdtemp", real)
        os.rmdir(path)
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)

    folder = SocketFolder.create()

    assert folder.path.is_dir()
    folder.remove()


def test_where_folders_cannot_be_locked_there_is_one_and_it_goes(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)

    folder = SocketFolder.create()

    assert list(temporary.iterdir()) == [folder.path]
    folder.remove()
    assert list(temporary.iterdir()) == []
