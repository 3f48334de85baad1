"""What a node keeps of object stores: bounded, shared, and never a reason for its agent's one thread to wait."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.staging import fetching
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import fetch
from parallelrun_agent.staging.room import Room, StagingFull
from parallelrun_agent.staging.shards import SHARDS, Shards
from parallelrun_core.storage.interface import Version
from tests.twins.sabotage import expect_failure

SIZE = 1000
VERSION = Version(SIZE, 0.0, "tag")


class Node:
    """A cache, and a tree of links into it."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.cache = StageCache(folder / "cache", max_bytes)
        self.settle()

    def settle(self) -> None:
        """Wait until all that is there was looked at."""
        for thread in threading.enumerate():
            if thread.name == "stage-room":
                thread.join(30)

    def put(self, name: str, *, is_used: bool = False) -> Path:
        self.cache.reserve(SIZE)
        self.cache.put(f"s3://b/{name}", VERSION, memoryview(b"x" * SIZE), str(self.folder / name))
        if not is_used:
            (self.folder / name).unlink()
        return self.folder / name

    def has(self, name: str) -> bool:
        target = self.folder / f"again {name}"
        there = self.cache.take(f"s3://b/{name}", VERSION, str(target))
        target.unlink(missing_ok=True)
        return there

    def held(self) -> int:
        return sum(path.stat().st_size for path in self.cache.folder.rglob("*") if path.is_file())


@pytest.fixture
def make(tmp_path: Path) -> Callable[[int], Node]:
    return lambda max_bytes: Node(tmp_path, max_bytes)


def test_admission_waits_for_no_look_at_the_disk(
    make: Callable[[int], Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, is_over = threading.Event(), threading.Event()
    look = Shards.look

    def slow(shards: Shards, *args: Any) -> Any:
        looks.set()
        assert is_over.wait(30)
        return look(shards, *args)

    monkeypatch.setattr(Shards, "look", slow)
    cache = StageCache(tmp_path / "cache", 2 * SIZE)  # nor does who opens it
    waits = threading.Thread(target=cache.reserve, args=(SIZE,))
    waits.start()
    assert looks.wait(30)

    assert cache.admit(SIZE)
    cache.leave(SIZE)

    is_over.set()
    waits.join(30)
    assert not waits.is_alive()


def test_the_limit_is_kept_and_what_was_used_last_stays(make: Callable[[int], Node]) -> None:
    node = make(20 * SIZE)
    node.put("used", is_used=True)
    for number in range(100):
        node.put(str(number))
        assert node.held() <= 20 * SIZE
    assert node.has("used")
    assert [name for name in map(str, range(88, 100)) if not node.has(name)] == []
    assert not node.has("50")


def test_what_is_there_counts_for_the_next_agent(make: Callable[[int], Node]) -> None:
    first = make(20 * SIZE)
    for number in range(10):
        first.put(f"in use {number}", is_used=True)

    second = make(12 * SIZE)

    second.put("a", is_used=True)
    second.put("b", is_used=True)
    with pytest.raises(StagingFull):
        second.cache.reserve(SIZE)


def test_half_of_what_is_free_and_held_is_the_same_at_each_start(make: Callable[[int], Node], tmp_path: Path) -> None:
    free = 100 * SIZE

    def limit() -> int:
        status = os.statvfs_result((1, 1, 0, 0, free, 0, 0, 0, 0, 255))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _: status)
            return make(0).cache.max_bytes

    assert limit() == 50 * SIZE
    node = make(50 * SIZE)
    for number in range(40):
        node.put(str(number))
    free -= 40 * SIZE
    make(50 * SIZE)  # has noted what is there

    assert abs(limit() - 50 * SIZE) < SIZE


def test_one_look_is_at_a_small_part(make: Callable[[int], Node], monkeypatch: pytest.MonkeyPatch) -> None:
    node = make(10_000 * SIZE)
    for number in range(600):
        node.put(str(number))
    sizes = [len(node.cache._shards.look(shard, node.cache._room.doubt)) for shard in range(SHARDS)]
    assert sum(sizes) == 600
    assert max(sizes) < 20


def test_what_another_agent_takes_for_abandoned_is_begun_again(
    make: Callable[[int], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, flock, taken = make(20 * SIZE), fcntl.flock, list[str]()

    def late(fd: int, operation: int) -> None:
        if not taken:
            taken.append(os.readlink(f"/proc/self/fd/{fd}"))
            os.unlink(taken[0])
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)

    with node.cache.begin("s3://b/a", VERSION) as new:
        os.write(new.fd, b"x" * SIZE)
        new.keep(str(node.folder / "a"))

    assert (node.folder / "a").read_bytes() == b"x" * SIZE
    assert taken


def test_two_threads_that_have_the_same_object_both_use_it(make: Callable[[int], Node]) -> None:
    node = make(20 * SIZE)
    paths = [str(node.folder / name) for name in "ab"]
    for path in paths:
        node.cache.reserve(SIZE)
        node.cache.put("s3://b/same", VERSION, memoryview(b"x" * SIZE), path)

    assert [Path(path).read_bytes() for path in paths] == [b"x" * SIZE] * 2
    assert node.held() == SIZE


class FullDisk:
    """A disk with room for some files of the cache; what has its own tree of links isn't counted twice."""

    def __init__(self, node: Node, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._node, self._room = node, room
        self._write = os.write
        self.fetched = 0
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(fetching, "storage_of", lambda _: self)

    def write(self, fd: int, content: Any) -> int:
        if len(content) == SIZE and self._node.held() + SIZE > self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(fd, content)

    def has_room(self, name: str) -> bool:
        try:
            fetch(f"s3://b/{name}", VERSION, str(self._node.folder / name), self._node.cache)
        except StagingFull:
            return False
        return True

    def whole(self, url: str, version: Version) -> memoryview:
        self.fetched += 1
        return memoryview(b"y" * SIZE)


def test_a_full_disk_costs_what_nobody_uses(make: Callable[[int], Node], monkeypatch: pytest.MonkeyPatch) -> None:
    node = make(1000 * SIZE)
    used = [node.put(f"in use {number}", is_used=True) for number in range(4)]
    for number in range(4):
        node.put(str(number))
    disk = FullDisk(node, 8 * SIZE, monkeypatch)

    assert [disk.has_room(f"new {number}") for number in range(5)] == [True] * 4 + [False]
    fetched = disk.fetched
    assert not disk.has_room("more")

    assert all(path.read_bytes() for path in used)
    assert disk.fetched == fetched, "what there is no room for isn't fetched again and again"


def test_a_full_disk_with_all_in_use_costs_one_look_at_each_shard(
    make: Callable[[int], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make(1000 * SIZE)
    node.put("in use", is_used=True)
    looks, look = list[int](), Shards.look

    def counted(shards: Shards, shard: int, *args: Any) -> Any:
        looks.append(shard)
        return look(shards, shard, *args)

    monkeypatch.setattr(Shards, "look", counted)

    with pytest.raises(StagingFull):
        node.cache.free(SIZE)

    assert len(looks) == SHARDS


def test_a_cache_that_keeps_what_nobody_uses_on_a_full_disk_is_found(
    make: Callable[[int], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Room, "free", lambda _room, _size: None)
    with expect_failure():
        test_a_full_disk_costs_what_nobody_uses(make, monkeypatch)


def test_files_of_no_shard_are_removed(make: Callable[[int], Node], tmp_path: Path) -> None:
    (tmp_path / "cache" / "objects").mkdir(parents=True)
    left = tmp_path / "cache" / "objects" / ("f" * 64)
    left.write_bytes(b"x")
    make(SIZE)
    deadline = time.monotonic() + 30
    while left.exists():
        assert time.monotonic() < deadline, "nobody has removed it"
        time.sleep(0.01)
