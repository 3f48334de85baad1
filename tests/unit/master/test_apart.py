"""Whoever leads goes on while a store is waited for, and only then; a file system that hangs is still found."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_core.folder.manifest import read_manifest
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.interface import Page, Version
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.local import LocalStorage
from parallelrun_core.storage.objects import ObjectStorage, clients
from parallelrun_core.storage.objects.copying import in_threads
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.wire.message import decode, files_of
from parallelrun_master.planning.apart import Hung, WatchedThread
from parallelrun_master.publishing.scheduling import Scheduler, StoreTrouble

PATIENCE_S = 30.0
SPEC = {"entry_script": "e.py", "inputs": {"a": {"path": "s3://bucket/in"}}, "mini_batch_size": 2}


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A leader has a process of its own, which ends with it: what it leaves open is found here."""
    yield
    gc.collect()


class Slow:
    """A listing whose second page comes when it is let go on."""

    def __init__(self, wait: Callable[[threading.Event], object]) -> None:
        self.go_on, self.is_asked = threading.Event(), threading.Event()
        self.versions = [Version(1, 1.0, '"a"')] * 2
        self.is_sorted = True
        self.markers = LeftoverNames()
        self.error: Exception | None = None
        self._wait = wait

    def __iter__(self) -> Iterator[Page]:
        yield b"s3://bucket/in", [b"a", b"b"]
        self.is_asked.set()
        self._wait(self.go_on)
        if self.error is not None:
            raise self.error
        yield b"s3://bucket/in", [b"c", b"d"]


def in_a_store(event: threading.Event) -> None:
    in_threads(lambda _: event.wait(PATIENCE_S), ["a"], 1)


def in_a_file_system(event: threading.Event) -> object:
    return event.wait(PATIENCE_S)


def scheduler(folder: Path, listing: Slow, monkeypatch: pytest.MonkeyPatch, patience_s: float = 0.2) -> Scheduler:
    monkeypatch.setattr(ObjectStorage, "files", lambda *_, **__: listing)
    return Scheduler(folder, JobSpec.parse(SPEC), 1, patience_s=patience_s)


def step_until(scheduler: Scheduler, is_so: Callable[[], bool], budget_s: float = 0.005) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        before = time.monotonic()
        scheduler.step(budget_s)
        assert time.monotonic() - before < 5, "a leader hears of nothing meanwhile"


def test_a_leader_goes_on_while_a_store_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Slow(in_a_store)
    leads = scheduler(tmp_path, listing, monkeypatch)
    step_until(leads, listing.is_asked.is_set)
    until = time.monotonic() + 0.6
    while time.monotonic() < until:  # three times the patience for file systems
        assert leads.step(0.005)
    listing.go_on.set()
    step_until(leads, lambda: leads.closing is not None)
    files = [path for entry in read_manifest(tmp_path) for path in files_of(decode(entry.raw))]
    assert files == [b"s3://bucket/in/" + name for name in (b"a", b"b", b"c", b"d")]


@pytest.mark.parametrize("at_once", ["1", "4"])
def test_a_request_that_nobody_answers_is_no_hang(
    tmp_path: Path, at_once: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as black_hole:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{black_hole.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("PARALLELRUN_LIST_AT_ONCE", at_once)
        clients.forget()
        leads = Scheduler(tmp_path, JobSpec.parse(SPEC), 1, patience_s=0.2)
        black_hole.setblocking(False)
        connections = list[socket.socket]()

        def is_asked() -> bool:
            with suppress(BlockingIOError):
                connections.append(black_hole.accept()[0])
            return bool(connections)

        step_until(leads, is_asked)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            assert leads.step(0.005)
        leads.stop()
        connections[0].close()
    clients.forget()


def test_a_leader_that_is_to_stop_does_not_wait_for_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Slow(in_a_store)
    leads = scheduler(tmp_path, listing, monkeypatch)
    step_until(leads, listing.is_asked.is_set)
    before = time.monotonic()
    leads.step(0.005)
    leads.stop()
    assert time.monotonic() - before < 5
    listing.go_on.set()


def test_a_file_system_that_hangs_beside_a_store_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Slow(in_a_file_system)
    leads = scheduler(tmp_path, listing, monkeypatch)
    with pytest.raises(Hung, match=r"0\.2 s, in wait \(threading\.py\)"):
        step_until(leads, lambda: False)
    listing.go_on.set()
    leads.stop()


def test_a_store_that_is_away_is_a_trouble_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Slow(in_a_store)
    listing.error = StoreAway(5, "no answer", "s3://bucket/in")
    listing.go_on.set()
    leads = scheduler(tmp_path, listing, monkeypatch)
    with pytest.raises(StoreTrouble, match="no answer"):
        step_until(leads, lambda: leads.closing is not None)
    leads.stop()


def test_a_successor_asks_a_store_for_nothing_that_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Slow(in_a_store)
    listing.go_on.set()
    first = scheduler(tmp_path, listing, monkeypatch)
    step_until(first, lambda: first.closing is not None)
    first.stop()
    monkeypatch.delattr(ObjectStorage, "files")
    successor = Scheduler(tmp_path, JobSpec.parse(SPEC), 2)
    assert not successor.step(60)
    assert successor.mini_batches == 2
    successor.stop()


def test_a_local_job_has_no_such_thread(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").touch()
    (tmp_path / "job").mkdir()
    before = set(threading.enumerate())
    leads = Scheduler(tmp_path / "job", JobSpec.parse({"entry_script": "e.py", "inputs": str(tmp_path / "in")}), 1)
    while leads.step(60):
        assert set(threading.enumerate()) <= before
    assert leads.mini_batches == 1


def test_what_an_mltable_names_is_cut_by_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might name what is in a store. When it is known that it doesn't, the other thread has begun."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "MLTable").write_text("paths:\n- folder: ./d\n")
    (tmp_path / "in" / "d").mkdir()
    (tmp_path / "job").mkdir()
    listing = Slow(in_a_file_system)
    monkeypatch.setattr(LocalStorage, "files", lambda *_, **__: listing)
    inputs = {"a": {"path": str(tmp_path / "in"), "type": "mltable"}}
    leads = Scheduler(tmp_path / "job", JobSpec.parse({**SPEC, "inputs": inputs}), 1, patience_s=PATIENCE_S)
    step_until(leads, listing.is_asked.is_set, PATIENCE_S)  # in one step, or the leader itself would do the rest

    leads.step(0.005)
    listing.go_on.set()

    while leads.step(0.005):
        pass
    assert leads.mini_batches == 2


def test_what_is_asked_for_comes_once_and_errors_are_raised() -> None:
    apart, threads = WatchedThread(PATIENCE_S), set()

    def work() -> int:
        threads.add(threading.get_ident())
        return 0

    def fail() -> int:
        raise TimeoutError("its own")

    def fails() -> None:
        while apart.ask(fail) is None:
            pass

    assert [apart.ask(work), apart.ask(work)] == [0, 0]
    with pytest.raises(TimeoutError, match="its own"):
        fails()
    closed = threading.Event()
    apart.close(closed.set)
    assert closed.wait(PATIENCE_S)
    assert len(threads) == 1
    assert threading.get_ident() not in threads
