"""Objects come to a node once, in the version that was listed, and stay for as long as somebody uses them."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.staging import stager
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.fetching import bring
from parallelrun_agent.staging.room import StagingFull
from parallelrun_agent.staging.shards import Shards
from parallelrun_agent.staging.staged import Staged, StagedObject
from parallelrun_agent.staging.stager import Stager
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.objects import ObjectStorage
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import Moto, ObjectServer
from tests.twins.sabotage import expect_failure

pytestmark = pytest.mark.integration
Make = Callable[..., "Node"]


@pytest.fixture(scope="module", params=[Moto], ids=["Moto"])
def server(request: pytest.FixtureRequest, store: Store) -> ObjectServer:
    return store(request.param)


class Node:
    """A stager, with the pipe that it wakes its agent by."""

    def __init__(self, folder: Path, bucket: Bucket, max_bytes: int, timeout_s: float, beside: int) -> None:
        self.cache = StageCache(folder / "cache", max_bytes)
        self.tree = folder / "job"
        self._bucket = bucket
        self._wake, self._end = os.pipe()
        os.set_blocking(self._end, False)
        self.stager = Stager(self.cache, self.tree, wake=self._end, timeout_s=timeout_s, beside=lambda: beside)

    def file(self, key: str, version: Version | None = None) -> StagedObject:
        url = self._bucket.url(key)
        return StagedObject(url, version or ObjectStorage().version(url), str(self.tree / key))

    def next(self) -> Staged:
        """The next mini-batch whose staging has ended."""
        deadline = time.monotonic() + 30
        while not self.stager.done:
            assert time.monotonic() < deadline, "nothing has ended"
            self.stager.retry()
            if select.select([self._wake], [], [], 0.05)[0]:
                os.read(self._wake, 1)
        return self.stager.done.popleft()

    def stage(self, token: str, *files: StagedObject) -> Staged:
        self.stager.stage(token, list(files))
        return self.next()

    def close(self) -> None:
        self.stager.close()
        os.close(self._wake)
        os.close(self._end)


@pytest.fixture
def node(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[Node] = []

    def make(name: str = "node", *, max_bytes: int = 1 << 20, timeout_s: float = 600, beside: int = 0) -> Node:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        made.append(Node(folder, bucket, max_bytes, timeout_s, beside))
        return made[-1]

    yield make
    for each in made:
        each.close()


def files(cache: StageCache) -> list[Path]:
    return [path for path in cache.folder.rglob("*") if path.is_file()]


def test_a_mini_batch_finds_its_objects_at_their_places(bucket: Bucket, node: Make) -> None:
    here, contents = node(), {"d/a.bin": b"a" * 1000, "d/e/b.bin": b"", "c.bin": b"c"}
    for key, content in contents.items():
        bucket.put(key, content)

    staged = here.stage("t1", *map(here.file, contents))

    assert (staged.token, staged.fetched_bytes, staged.failure) == ("t1", 1001, None)
    assert {key: (here.tree / key).read_bytes() for key in contents} == contents
    here.stager.release("t1")
    assert [path for path in here.tree.rglob("*") if path.is_file()] == []


def test_what_is_here_is_not_fetched_again_not_even_by_the_next_agent(bucket: Bucket, node: Make) -> None:
    bucket.put("a", b"12345")
    here = node()
    assert here.stage("t1", here.file("a")).fetched_bytes == 5
    assert here.stage("t2", here.file("a")).fetched_bytes == 0
    here.stager.release("t1")
    assert (here.tree / "a").read_bytes() == b"12345", "another one still needs it"
    here.stager.release("t2")
    assert not (here.tree / "a").exists()

    restarted = node()

    assert restarted.stage("t3", restarted.file("a")).fetched_bytes == 0


SIZES = [1, 1 << 20, 6 << 20]
"""Each in its own way: in memory, into a file, and as several ranges at the same time."""


@pytest.mark.parametrize("size", SIZES)
def test_a_replaced_object_fails_and_the_new_version_is_another_one(bucket: Bucket, node: Make, size: int) -> None:
    bucket.put("a", b"old" * size)
    here = node(max_bytes=1 << 30)
    listed = here.file("a")
    bucket.put("a", b"new" * size)

    failure = here.stage("t1", listed).failure

    assert failure is not None
    assert (failure.category, bucket.url("a") in failure.message) == ("INPUT_CHANGED", True)
    assert here.stage("t2", here.file("a")).failure is None
    assert (here.tree / "a").read_bytes() == b"new" * size


@pytest.mark.parametrize("size", SIZES)
def test_an_agent_that_fetches_any_version_is_found(
    bucket: Bucket, node: Make, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def any_version(url: str, version: Version, *args: Any) -> int:
        return bring(url, version._replace(tag=""), *args)

    monkeypatch.setattr(stager, "bring", any_version)
    with expect_failure():
        test_a_replaced_object_fails_and_the_new_version_is_another_one(bucket, node, size)


def test_a_missing_object_fails_only_its_mini_batch(bucket: Bucket, node: Make) -> None:
    bucket.put("a")
    here = node()
    gone = here.file("gone", Version(3, 0.0, '"tag"'))

    failed, good = here.stage("t1", here.file("a"), gone), here.stage("t2", here.file("a"))

    assert failed.failure is not None
    assert failed.failure.category == "INPUT_UNREADABLE"
    assert bucket.url("gone") in failed.failure.message
    assert "NoSuchKey" in failed.failure.message
    assert good.failure is None


def later_than_now(node: Node) -> None:
    """Wait until the clock of the file system, by which files are used, has moved on."""
    file = node.cache.folder.parent / "now"
    file.touch()
    now = file.stat().st_ctime
    while file.stat().st_ctime <= now:
        file.touch()


def test_the_least_recently_used_goes_first_and_never_what_is_in_use(bucket: Bucket, node: Make) -> None:
    here = node(max_bytes=3000)
    for key in "abcd":
        bucket.put(key, key.encode() * 1000)
    for key in "abc":
        here.stage(key, here.file(key))
    later_than_now(here)
    here.stager.release("b")
    later_than_now(here)
    here.stager.release("c")

    assert here.stage("d", here.file("d")).failure is None

    here.stager.release("a")
    here.stager.release("d")
    fetched = {key: here.stage(f"again {key}", here.file(key)).fetched_bytes for key in "ad"}
    assert fetched == {"a": 0, "d": 0}
    assert here.stage("again b", here.file("b")).fetched_bytes == 1000


def test_a_cache_that_evicts_what_is_in_use_is_found(
    bucket: Bucket, node: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Shards.look
    monkeypatch.setattr(
        Shards, "look", lambda shards, *args: [each._replace(is_in_use=False) for each in look(shards, *args)]
    )
    with expect_failure():
        test_the_least_recently_used_goes_first_and_never_what_is_in_use(bucket, node)


def test_a_mini_batch_waits_until_there_is_room(bucket: Bucket, node: Make) -> None:
    here = node(max_bytes=1500)
    for key in "ab":
        bucket.put(key, key.encode() * 1000)
    here.stage("t1", here.file("a"))
    here.stager.stage("t2", [here.file("b")])
    assert not here.stager.done
    assert not (here.tree / "b").exists()

    here.stager.release("t1")

    assert here.next().token == "t2"
    assert (here.tree / "b").read_bytes() == b"b" * 1000


def test_a_mini_batch_that_never_fits_is_told_so(bucket: Bucket, node: Make) -> None:
    here = node(max_bytes=10)
    bucket.put("a", b"1" * 11)

    failure = here.stage("t1", here.file("a")).failure

    assert failure is not None
    assert "--stage-bytes" in failure.message


def test_two_agents_share_what_one_has_fetched_and_its_limit(bucket: Bucket, node: Make) -> None:
    one, other = node(max_bytes=2500), node(max_bytes=2500)
    for key in "abc":
        bucket.put(key, key.encode() * 1000)
    assert one.stage("t1", one.file("a")).fetched_bytes == 1000
    used_there = other.file("b")._replace(target=str(other.tree / "b of the other"))
    assert other.stage("t1", used_there).fetched_bytes == 1000
    assert other.stage("t2", other.file("a")._replace(target=str(other.tree / "a of the other"))).fetched_bytes == 0

    with pytest.raises(StagingFull):
        one.cache.begin("s3://b/c", Version(1000, 0.0))


def test_what_a_dead_agent_was_fetching_is_removed(bucket: Bucket, node: Make) -> None:
    first = node()
    left = first.cache.folder / "ab" / ".new-left"
    left.write_bytes(b"x" * 100)
    being_fetched = first.cache.begin("s3://b/c", Version(100, 0.0))

    second = node()

    deadline = time.monotonic() + 30
    while left.exists():
        assert time.monotonic() < deadline, "nobody has removed it"
        time.sleep(0.01)
    assert len(files(second.cache)) == 1, "what is being fetched now stays"
    with being_fetched:
        pass
    assert files(second.cache) == []


def test_a_mini_batch_that_does_not_fit_beside_a_model_holds_up_nothing(bucket: Bucket, node: Make) -> None:
    here = node(max_bytes=2000, beside=1500)
    bucket.put("large", b"1" * 600)
    bucket.put("small", b"1" * 400)
    assert here.cache.admit(1500), "the model"

    failure = here.stage("t1", here.file("large")).failure

    assert failure is not None
    assert "inputs that each worker needs whole" in failure.message
    assert here.stage("t2", here.file("small")).failure is None


def test_a_mini_batch_does_not_wait_for_ever_for_what_other_jobs_use(bucket: Bucket, node: Make) -> None:
    here = node(max_bytes=2000, timeout_s=3.0)
    assert here.cache.admit(1500), "another job"
    for key, size in {"large": 600, "small": 400}.items():
        bucket.put(key, b"1" * size)
    here.stager.stage("t1", [here.file("large")])
    here.stager.stage("t2", [here.file("small")])

    large, small = here.next(), here.next()

    assert (large.token, small.token, small.failure) == ("t1", "t2", None)
    assert large.failure is not None
    assert "other jobs" in large.failure.message


def test_what_is_needed_again_while_it_is_removed_is_there(
    bucket: Bucket, node: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("a", b"1")
    here = node()
    file = here.file("a")
    here.stage("t1", file)
    remove = stager._remove
    again = threading.Thread(target=here.stager.stage, args=("t2", [file]))

    def slowly(path: str) -> None:
        again.start()
        again.join(0.3)
        remove(path)

    monkeypatch.setattr(stager, "_remove", slowly)
    here.stager.release("t1")
    monkeypatch.setattr(stager, "_remove", remove)
    again.join(20)

    assert here.next().failure is None
    assert (here.tree / "a").read_bytes() == b"1"


@pytest.mark.parametrize("part", ["{}", "{}/a", "a/{}"])
def test_an_object_whose_name_no_file_can_have_fails_alone_by_its_name(bucket: Bucket, node: Make, part: str) -> None:
    bucket.put("a", b"1")
    here = node()
    long = here.file("a")._replace(target=str(here.tree / part.format("é" * 128)))
    failure = here.stage("t1", long).failure
    assert failure is not None
    assert failure.category == "INPUT_UNREADABLE"
    assert f"{long.url} can't be a file here" in failure.message
    assert here.stage("t2", here.file("a")).failure is None


def test_an_object_may_have_the_name_of_a_folder_that_nobody_needs_any_more(bucket: Bucket, node: Make) -> None:
    here = node()
    for key in ("a", "b"):
        bucket.put(key)
    file, below = here.file("a"), here.file("b")._replace(target=str(here.tree / "a/b/c"))
    here.stage("t1", below)
    failure = here.stage("t2", file).failure
    assert failure is not None
    assert "Rename one of them" in failure.message
    here.stager.release("t1")

    assert here.stage("t3", file).failure is None

    failure = here.stage("t4", below).failure
    assert failure is not None
    assert "Rename one of them" in failure.message
    here.stager.release("t3")
    assert here.stage("t5", below).failure is None


def test_a_node_that_allows_no_more_threads_goes_on_with_fewer(
    bucket: Bucket, node: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()
    refused = iter([True, True])  # at first, there is none

    def allowed(thread: threading.Thread) -> None:
        if thread.name == "stage":
            if len(started) == 2 or next(refused, False):
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    here = node()
    monkeypatch.setattr(threading.Thread, "start", allowed)
    for key in "abcde":
        bucket.put(key)
        assert here.stage(key, here.file(key)).failure is None
    assert len(started) == 2


def test_what_is_here_in_part_is_fetched_in_part(bucket: Bucket, node: Make) -> None:
    for key in "abc":
        bucket.put(key, key.encode() * 10)
    here = node()
    assert here.stage("t1", here.file("b")).fetched_bytes == 10
    here.stager.release("t1")
    assert here.stage("t2", *map(here.file, "abc")).fetched_bytes == 20
    assert [(here.tree / key).read_bytes() for key in "abc"] == [b"a" * 10, b"b" * 10, b"c" * 10]
