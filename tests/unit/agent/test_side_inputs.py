"""Inputs that each worker needs whole come to a node, or it is said why not."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parallelrun_agent.staging import side_inputs
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.side_inputs import SideInputs
from parallelrun_agent.staging.tree import JobTree
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.interface import Page, Replaced, Version
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.trouble import AccessDenied, Missing, StoreAway
from parallelrun_core.wire.outcome import Failure

MODEL = "s3://b/model"


class Store(ObjectStorage):
    """One that is not asked over a network. Each object's content is its version's tag, again and again."""

    def __init__(self) -> None:
        self.objects: dict[str, Version] = {}
        self.errors: list[Exception] = []
        """Raised first, instead of what is fetched."""
        self.versions: list[Version] = []

    def have(self, name: str, size: int = 10, tag: str = "1") -> None:
        self.objects[f"{MODEL}/{name}"] = Version(size, 0.0, tag)

    def files(self, path: str, *_: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Page]:
        for url, version in self.objects.items():
            folder, _, name = url.rpartition("/")
            self.versions = [version]
            yield folder.encode(), [name.encode()]

    def fetch(self, url: str, version: Version, target: str, cache: StageCache) -> int:
        if self.errors:
            raise self.errors.pop(0)
        if self.objects.get(url) != version:
            raise Replaced(f"{url} has been replaced")
        with open(target, "x") as file:
            file.write(version.tag * version.size_bytes)
        return version.size_bytes


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    monkeypatch.setattr(side_inputs, "storage_of", lambda _: store)
    monkeypatch.setattr(side_inputs, "fetch", store.fetch)
    monkeypatch.setattr(side_inputs, "_AGAIN_S", 0.01)
    monkeypatch.setattr(side_inputs, "_SAY_EVERY_S", 0.05)
    return store


@pytest.fixture
def cache(tmp_path: Path) -> StageCache:
    return StageCache(tmp_path / "cache", 100)


Bring = Callable[..., SideInputs]


@pytest.fixture
def bring(store: Store, cache: StageCache, tmp_path: Path) -> Iterator[Bring]:
    made: list[SideInputs] = []

    def make(timeout_s: float = 60, changed: Callable[[], None] = lambda: None) -> SideInputs:
        tree = JobTree(tmp_path / "tree", JobSpec.parse({"entry_script": "e.py", "code": "/c", "inputs": "/x"}))
        made.append(SideInputs({"m": MODEL}, tree, cache, timeout_s=timeout_s, changed=changed))
        return made[-1]

    yield make
    for each in made:
        each.close()


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (value := condition()):
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.005)
    return value


def is_ready(inputs: SideInputs) -> bool:
    failure = inputs.take_failure()
    assert failure is None, failure
    return inputs.is_ready


def contents(inputs: SideInputs) -> dict[str, str]:
    folder = Path(inputs.paths["m"])
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "error",
    [
        Missing(2, "there is no such object", f"{MODEL}/a"),
        AccessDenied(13, "AccessDenied", f"{MODEL}/a"),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_another_try_would_not_change_is_told_for_good(store: Store, bring: Bring, error: Exception) -> None:
    store.have("a")
    store.errors = [error]
    inputs = bring()
    failure: Failure = until(inputs.take_failure)
    assert (failure.category, str(error.args[-1]) in failure.message) == ("INPUT_UNREADABLE", True)
    assert not inputs.is_due(time.monotonic()), "nothing comes any more"


def test_nothing_at_a_url_is_told_for_good(bring: Bring) -> None:
    failure: Failure = until(bring().take_failure)
    assert (failure.category, MODEL in failure.message) == ("INPUT_UNREADABLE", True)


def test_an_object_that_would_be_a_file_and_a_folder_is_told(store: Store, bring: Bring) -> None:
    store.have("a")
    store.have("a/b/c")
    failure: Failure = until(bring().take_failure)
    assert failure.category == "INPUT_UNREADABLE"
    assert f"{MODEL}/a can't be a file" in failure.message


def test_a_store_that_is_away_for_too_long_is_told_again_and_may_come_back(store: Store, bring: Bring) -> None:
    store.have("a")
    store.errors = [StoreAway(5, "SlowDown", f"{MODEL}/a") for _ in range(60)]
    inputs = bring(timeout_s=0.05)
    assert inputs.is_due(time.monotonic()), "it is on its way"
    for _ in range(2):
        failure: Failure = until(inputs.take_failure)
        assert (failure.category, "SlowDown" in failure.message) == ("LOAD_TIMEOUT", True)
    until(lambda: inputs.is_ready)
    assert contents(inputs) == {"a": "1" * 10}


def test_a_node_that_gets_objects_now_and_then_is_waited_for(
    store: Store, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        store.have(str(number), 1)
    fetch, calls = store.fetch, itertools.count()

    def every_second_time(*args: Any) -> int:
        if next(calls) % 2:
            raise StoreAway(5, "SlowDown", MODEL)
        return fetch(*args)

    monkeypatch.setattr(side_inputs, "fetch", every_second_time)
    inputs = bring(timeout_s=1.0)
    until(lambda: is_ready(inputs))


def test_that_they_are_on_their_way_is_reported_from_time_to_time(
    store: Store, bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.have("a")
    goes_on = threading.Event()
    fetch = store.fetch

    def slow(*args: Any) -> int:
        goes_on.wait(20)
        return fetch(*args)

    monkeypatch.setattr(side_inputs, "fetch", slow)
    inputs, now = bring(), time.monotonic()
    assert inputs.is_due(now)
    inputs.reported(now)
    assert not inputs.is_due(now)
    assert inputs.is_due(now + 1)
    goes_on.set()
    until(lambda: is_ready(inputs))
    assert not inputs.is_due(now + 1)


def test_what_is_asked_for_again_takes_no_more_room(store: Store, bring: Bring, cache: StageCache) -> None:
    store.have("a", 40)
    store.errors = [StoreAway(5, "SlowDown", MODEL) for _ in range(3)]
    inputs = bring()
    until(lambda: is_ready(inputs))
    assert inputs.admitted_bytes == 40
    assert not cache.admit(61)
    inputs.close()
    assert cache.admit(100)


def test_what_failed_or_is_listed_after_its_end_takes_no_room(
    store: Store, bring: Bring, cache: StageCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.have("a", 40)
    store.errors = [Missing(2, "gone", MODEL)]
    until(bring().take_failure)
    assert cache.admit(100)
    cache.leave(100)

    is_listing, goes_on = threading.Event(), threading.Event()
    split = store.split

    def slow(path: str) -> Any:
        is_listing.set()
        goes_on.wait(20)
        return split(path)

    monkeypatch.setattr(store, "split", slow)
    with closing(bring()) as inputs:
        assert is_listing.wait(20)
    goes_on.set()
    inputs._thread.join(20)
    assert cache.admit(100)


def test_what_never_fits_is_told(store: Store, bring: Bring) -> None:
    store.have("a", 101)
    failure: Failure = until(bring().take_failure)
    assert (failure.category, "--stage-bytes" in failure.message) == ("LOAD_TIMEOUT", True)


def test_all_of_an_input_is_of_the_same_listing(store: Store, bring: Bring) -> None:
    for name in ("config", "old"):
        store.have(name)
    fetch = store.fetch
    fetched: list[str] = []

    def replaced_meanwhile(url: str, *args: Any) -> int:
        size = fetch(url, *args)
        fetched.append(url)
        if len(fetched) == 1:
            store.objects.clear()
            for name in ("config", "weights"):
                store.have(name, tag="2")
        return size

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(side_inputs, "_THREADS", 1)
        patched.setattr(side_inputs, "fetch", replaced_meanwhile)
        inputs = bring()
        until(lambda: inputs.is_ready)
    assert contents(inputs) == {"config": "2" * 10, "weights": "2" * 10}
