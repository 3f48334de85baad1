"""Whatever a store does, a mini-batch gets all of its objects in the versions that were listed, or is told why not."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.staged import Staged, StagedObject
from parallelrun_agent.staging.stager import Stager
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.objects import ObjectStorage, clients
from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import ObjectServer, SeaweedFS
from tests.store_proxy import StoreProxy
from tests.twins import sabotage

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SIZE = 60_000
Make = Callable[..., "Node"]


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(SeaweedFS)


@pytest.fixture
def proxy(server: ObjectServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    with StoreProxy(server.url) as proxy:
        for name, value in server.environment_at(proxy.url).items():
            monkeypatch.setenv(name, value)
        clients.forget()
        yield proxy
    clients.forget()


class Node:
    """What stages on a node, with four objects in the store."""

    def __init__(self, folder: Path, bucket: Bucket, timeout_s: float) -> None:
        self.cache, self.tree = StageCache(folder / "cache", 10 << 20), folder / "tree"
        self._wake, self._end = os.pipe()
        os.set_blocking(self._end, False)
        self.stager = Stager(self.cache, self.tree, wake=self._end, timeout_s=timeout_s)
        self.contents = {f"in/{name}": os.urandom(SIZE) for name in "abcd"}
        for key, content in self.contents.items():
            bucket.put(key, content)
        self._bucket = bucket
        self.files = [self.file(key) for key in self.contents]

    def file(self, key: str) -> StagedObject:
        url = self._bucket.url(key)
        return StagedObject(url, ObjectStorage().version(url), str(self.tree / key))

    def staged(self, timeout_s: float = 60) -> Staged:
        """How the staging ended; polled like an agent does."""
        deadline = time.monotonic() + timeout_s
        while not self.stager.done:
            assert time.monotonic() < deadline, "nothing has ended"
            select.select([self._wake], [], [], 0.2)
            self.stager.retry()
        return self.stager.done.popleft()

    def is_whole(self) -> bool:
        return {key: (self.tree / key).read_bytes() for key in self.contents} == self.contents

    def close(self) -> None:
        self.stager.close()
        os.close(self._wake)
        os.close(self._end)


@pytest.fixture
def node(bucket: Bucket, proxy: StoreProxy, tmp_path: Path) -> Iterator[Make]:
    made: list[Node] = []

    def make(timeout_s: float = 600) -> Node:
        made.append(Node(tmp_path, bucket, timeout_s))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_store_that_has_too_much_to_do_is_asked_again(node: Make, proxy: StoreProxy) -> None:
    here = node()
    proxy.spoil("503", times=6)
    here.stager.stage("t", here.files)

    staged = here.staged()

    assert staged.failure is None
    assert proxy.faults >= 6
    assert here.is_whole()


def test_what_was_cut_off_in_the_middle_is_read_again(node: Make, proxy: StoreProxy) -> None:
    here = node()
    proxy.spoil("cut", times=4)
    here.stager.stage("t", here.files)

    staged = here.staged()

    assert staged.failure is None
    assert proxy.faults >= 4
    assert here.is_whole()


def test_a_store_that_was_away_for_a_while_costs_nothing_but_time(node: Make, proxy: StoreProxy) -> None:
    here = node()
    proxy.set("reset")
    here.stager.stage("t", here.files)
    assert not here.stager.done
    back = threading.Timer(5.0, proxy.set, ("pass",))
    back.start()
    try:
        staged = here.staged()
    finally:
        back.cancel()
        back.join()

    assert (staged.failure, staged.fetched_bytes) == (None, 4 * SIZE)
    assert here.is_whole()


def prove_that_a_store_is_asked_again(node: Make, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_RETRY_FOR_S", 0)  # or the library has all the patience that this needs
    clients.forget()
    test_a_store_that_was_away_for_a_while_costs_nothing_but_time(node, proxy)


def test_a_store_is_asked_again_when_the_library_has_given_up(
    node: Make, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove_that_a_store_is_asked_again(node, proxy, monkeypatch)


def test_an_agent_that_asks_a_store_only_once_is_found(
    node: Make, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sabotage.without("staging.asked_again"), sabotage.expect_failure():
        prove_that_a_store_is_asked_again(node, proxy, monkeypatch)


def test_a_store_that_is_slow_is_waited_for(node: Make, proxy: StoreProxy) -> None:
    here = node()
    proxy.set("delay")
    here.stager.stage("t", here.files)

    assert here.staged().failure is None
    assert here.is_whole()


@pytest.mark.parametrize("mode", ["reset", "blackhole"])
def test_a_store_that_stays_away_fails_the_mini_batch_in_time(node: Make, proxy: StoreProxy, mode: str) -> None:
    here = node(timeout_s=2)
    first, *others = here.files
    here.stager.stage("before", [first])
    assert here.staged().failure is None
    proxy.set(mode)  # type: ignore[arg-type]
    began = time.monotonic()
    here.stager.stage("t", here.files)

    failure = here.staged().failure

    assert failure is not None
    assert failure.category == "LOAD_TIMEOUT" or mode == "reset"  # of what doesn't answer, nothing else is known
    assert "task_overhead_timeout (2 s)" in failure.message
    assert first.url not in failure.message, "it was there already"
    assert any(file.url in failure.message for file in others)
    assert time.monotonic() - began < 10


def test_what_is_known_to_be_wrong_is_told_when_other_files_take_too_long(
    node: Make, proxy: StoreProxy, server: ObjectServer
) -> None:
    here = node(timeout_s=2)
    elsewhere = f"{server.url}/there-is-no-such-bucket/a"
    proxy.set("blackhole")
    here.stager.stage("t", [here.files[0], StagedObject(elsewhere, Version(1, 0.0), str(here.tree / "elsewhere"))])

    failure = here.staged().failure

    assert failure is not None
    assert failure.category == "INPUT_UNREADABLE"
    assert elsewhere in failure.message


def test_a_store_that_only_says_slow_down_is_quoted_in_the_end(
    node: Make, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_RETRY_FOR_S", 1)
    clients.forget()
    here = node(timeout_s=4)
    proxy.spoil("503")
    here.stager.stage("t", here.files)

    failure = here.staged().failure

    assert failure is not None
    assert failure.category == "INPUT_UNREADABLE"
    assert here.files[0].url in failure.message
    assert "SlowDown: Please reduce your request rate" in failure.message


def test_credentials_that_are_not_valid_any_more_are_told_at_once(
    node: Make, proxy: StoreProxy, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = node()
    for name, value in server.wrong.items():
        monkeypatch.setenv(name, value)
    clients.forget()
    here.stager.stage("t", here.files)

    failure = here.staged().failure

    assert failure is not None
    assert failure.category == "INPUT_UNREADABLE"
    assert "SignatureDoesNotMatch" in failure.message or "403" in failure.message
    assert any(file.url in failure.message for file in here.files)


def test_an_object_that_is_replaced_on_the_way_is_never_mixed(bucket: Bucket, node: Make, proxy: StoreProxy) -> None:
    here = node()
    key = "in/large"
    bucket.put(key, b"a" * (9 << 20))  # read in several ranges
    large = here.file(key)
    proxy.spoil("cut-off", times=1)
    here.stager.stage("t", [large])
    deadline = time.monotonic() + 30
    while not proxy.faults:
        assert time.monotonic() < deadline, "nothing was asked for"
        time.sleep(0.01)
    bucket.put(key, b"b" * (9 << 20))
    proxy.set("pass")

    staged = here.staged()

    assert staged.failure is not None
    assert staged.failure.category == "INPUT_CHANGED", staged.failure
    assert large.url in staged.failure.message
    assert not Path(large.target).exists()
