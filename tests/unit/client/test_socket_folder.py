"""The folders of sockets: nothing of those who are killed stays, and nothing of those who live goes."""

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
    folder = temporary / "parallelrun-abcd_123"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "redis.sock"))
        server.listen()

        SocketFolder.create().remove()

        assert (folder / "redis.sock").exists()
    SocketFolder.create().remove()
    assert not folder.exists()


@pytest.mark.parametrize("name", ["parallelrun-0-node1", "parallelrun-bench-abcd_123", "parallelrun-ABCD1234", "other"])
def test_folders_of_other_names_are_none_of_ours(temporary: Path, name: str) -> None:
    (temporary / name).mkdir()

    SocketFolder.create().remove()

    assert (temporary / name).is_dir()


def test_what_holds_more_than_a_socket_is_none_of_ours(temporary: Path) -> None:
    (temporary / "parallelrun-abcd_123").mkdir()
    (temporary / "parallelrun-abcd_123" / "diary.txt").touch()
    (temporary / "parallelrun-file_123").touch()
    (temporary / "there").mkdir()
    (temporary / "parallelrun-link_123").symlink_to(temporary / "there")

    SocketFolder.create().remove()

    assert sorted(path.name for path in temporary.iterdir()) == [
        "parallelrun-abcd_123", "parallelrun-file_123", "parallelrun-link_123", "there",
    ]  # fmt: skip
    assert (temporary / "parallelrun-abcd_123" / "diary.txt").exists()


def test_a_folder_of_another_user_is_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "parallelrun-abcd_123").mkdir()
    real = os.geteuid()

    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: real + 1)
        SocketFolder.create().remove()

    assert (temporary / "parallelrun-abcd_123").is_dir()


def test_two_clusters_that_start_together_have_a_folder_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one takes the first one's folder for an abandoned one, just after that was created."""
    real = tempfile.mkdtemp
    others: list[SocketFolder] = []

    def interrupted(*arguments: str, **options: str) -> str:
        path = real(*arguments, **options)
        if not others:
            monkeypatch.setattr(tempfile, "mkdtemp", real)
            others.append(SocketFolder.create())
            assert not Path(path).exists()
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)

    folder = SocketFolder.create()

    assert folder.path.is_dir()
    assert others[0].path.is_dir()
    assert folder.path != others[0].path
    folder.remove()
    others[0].remove()
