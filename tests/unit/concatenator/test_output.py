"""An output goes past the page cache where the file system lets it, and is the same bytes where it doesn't."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_concatenator import output as output_module
from parallelrun_concatenator.output import BlockWriter
from parallelrun_core.storage.local import direct as direct_module
from parallelrun_core.storage.stores import storage_of

BLOCK = 4096
FULL_AND_A_BIT = bytes(number % 251 for number in range(5 * BLOCK + 17))


def put(folder: Path, pieces: list[bytes]) -> bytes:
    """Write these, every other one where there is room for it; returns what is in the file then."""
    path, whole = folder / "out", b"".join(pieces)
    shown: list[int] = []
    with storage_of(str(path)).create(str(path), "job") as file, BlockWriter(file, shown.append) as output:
        for number, piece in enumerate(pieces):
            rest = memoryview(piece)
            while number % 2 and rest:
                room = output.room(len(rest))
                room[:] = rest[: len(room)]
                output.filled(len(room))
                rest = rest[len(room) :]
            assert output.write(rest) == len(rest)
        assert output.size == len(whole)
        merged = output.finish()
        file.publish([])
    assert merged == (len(whole), hashlib.sha256(whole).hexdigest())
    assert shown == sorted(shown)
    assert shown[-1] == len(whole)
    return path.read_bytes()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "BLOCK_BYTES", BLOCK)


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, small_blocks: None) -> Iterator[Path]:
    """File systems differ in what they take."""
    memory = Path("/dev/shm")
    if request.param == "disk":
        yield tmp_path
    elif not os.access(memory, os.W_OK):
        pytest.skip("no file system in memory")
    else:
        with tempfile.TemporaryDirectory(dir=memory) as name:
            yield Path(name)


class Disk:
    """Stands between an output and the file system, and may take less, or nothing; knows which writes were direct."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.direct: list[bool] = []
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: memoryview) -> int:
        direct = bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT)
        count = self.take(fd, data, direct)
        self.direct.append(direct)
        return count

    def take(self, fd: int, data: memoryview, direct: bool) -> int:
        return self._write(fd, data)


@given(
    lengths=st.lists(
        st.builds(
            lambda blocks, more: max(0, blocks * BLOCK + more),
            st.integers(0, 4),
            st.sampled_from([-512, -1, 0, 1, 512]) | st.integers(0, BLOCK),
        ),
        max_size=6,
    )
)
@example(lengths=[])
@example(lengths=[5 * BLOCK])
@example(lengths=[5 * BLOCK - 512])
@settings(deadline=None, max_examples=40)
def test_every_length_is_written_whatever_pieces_it_comes_in(lengths: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_module, "BLOCK_BYTES", BLOCK)
        patch.setattr(direct_module, "SYNC_EVERY_BYTES", 2 * BLOCK)
        pieces = [bytes((number + at) % 251 for at in range(length)) for number, length in enumerate(lengths)]
        assert put(Path(name), pieces) == b"".join(pieces)


def test_what_a_file_system_takes_past_the_page_cache_goes_past_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.fcntl(probe, fcntl.F_SETFL, os.O_DIRECT)
        os.write(probe, mmap(-1, BLOCK))
    except OSError:
        pytest.skip("this file system takes no such blocks past the page cache")
    finally:
        os.close(probe)
    disk = Disk(monkeypatch)
    assert put(folder, [FULL_AND_A_BIT]) == FULL_AND_A_BIT
    assert disk.direct[:5] == [True] * 5


def test_a_file_system_that_can_not_write_past_the_page_cache_gets_the_same_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(fd: int, command: int, flags: int = 0) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return fcntl.fcntl(fd, command, flags)

    monkeypatch.setattr(direct_module, "fcntl", refusing)
    disk = Disk(monkeypatch)
    assert put(folder, [FULL_AND_A_BIT]) == FULL_AND_A_BIT
    assert disk.direct == [False] * 6


@pytest.mark.parametrize("after", [0, 2])
def test_a_file_system_that_refuses_a_direct_write_gets_the_same_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    class Refusing(Disk):
        def take(self, fd: int, data: memoryview, direct: bool) -> int:
            if direct and len(self.direct) >= after:
                raise OSError(errno.EINVAL, "Invalid argument")
            return super().take(fd, data, direct)

    disk = Refusing(monkeypatch)
    assert put(folder, [FULL_AND_A_BIT]) == FULL_AND_A_BIT
    assert disk.direct[after:] == [False] * (6 - after)


@pytest.mark.parametrize("at_most", [1, 511, 512, BLOCK - 1])
def test_a_disk_that_takes_a_little_at_a_time_gets_it_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at_most: int
) -> None:
    class Slow(Disk):
        def take(self, fd: int, data: memoryview, direct: bool) -> int:
            return super().take(fd, data[:at_most], direct)

    Slow(monkeypatch)
    data = FULL_AND_A_BIT[-BLOCK - 600 :]
    assert put(folder, [data]) == data


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EIO, errno.EINVAL])
@pytest.mark.parametrize("blocks", [0, 3, 5])
def test_a_disk_that_takes_no_more_is_told_whichever_block_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, trouble: int, blocks: int
) -> None:
    class Full(Disk):
        def take(self, fd: int, data: memoryview, direct: bool) -> int:
            if len(self.direct) >= blocks:
                raise OSError(trouble, os.strerror(trouble))
            return super().take(fd, data, direct)

    Full(monkeypatch)
    with pytest.raises(OSError, match=os.strerror(trouble)):
        put(folder, [FULL_AND_A_BIT])


@pytest.mark.parametrize("sync", ["fdatasync", "fsync"])
def test_a_disk_that_can_not_keep_what_it_took_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(direct_module, "SYNC_EVERY_BYTES", 2 * BLOCK)
    monkeypatch.setattr(os, sync, fail)
    with pytest.raises(OSError, match="Input/output"):
        put(folder, [FULL_AND_A_BIT])


def test_a_block_is_not_filled_again_before_it_is_written(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Disk):
        def take(self, fd: int, data: memoryview, direct: bool) -> int:
            time.sleep(0.002)  # so that whoever doesn't wait is found; nothing here depends on how long it is
            return super().take(fd, data, direct)

    Slow(monkeypatch)
    pieces = [bytes([number]) * BLOCK for number in range(30)]
    assert put(tmp_path, pieces) == b"".join(pieces)


def test_an_output_takes_the_memory_of_a_few_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(fd: int, length: int) -> mmap:
        made.append(length)
        return mmap(fd, length)

    monkeypatch.setattr(output_module, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(output_module, "mmap", counted)
    put(tmp_path, [bytes(100 * BLOCK)])
    assert made == [BLOCK] * 3
