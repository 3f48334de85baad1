"""A leader whose inputs are in a store that doesn't answer: it leads on, hears of a cancel, and has its own limit."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from parallelrun_core.storage.interface import Page, Version
from parallelrun_core.storage.leftovers import LeftoverNames
from parallelrun_core.storage.objects import ObjectStorage
from parallelrun_core.storage.objects.copying import in_threads
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.wire.states import JobState
from parallelrun_master.policy.stages import Stage
from tests.integration.queue.job_context import PATIENCE_S, Led, wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LEASE_S = 0.5


class Silent:
    """A store that gives a page of two keys, and no answer after that until it is let go on."""

    def __init__(self) -> None:
        self.versions = [Version(1, 1.0, '"a"')] * 2
        self.is_sorted, self.markers = True, LeftoverNames()
        self.is_asked, self.answers = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[Page]:
        yield b"s3://bucket/in", [b"a", b"b"]
        self.is_asked.set()
        in_threads(lambda _: self.answers.wait(PATIENCE_S), ["a"], 1)
        yield b"s3://bucket/in", [b"c", b"d"]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A leader has a process of its own, which ends with it: what it leaves open is found here."""
    yield
    gc.collect()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    store = Silent()
    monkeypatch.setattr(ObjectStorage, "files", lambda *_, **__: store)
    yield store
    store.answers.set()


def test_it_leads_on_and_gives_out_what_is_listed(led: Callable[..., Led], silent: Silent) -> None:
    job = led(0, inputs="s3://bucket/in")
    leader = job.leader(seconds=LEASE_S)
    thread, agent = threading.Thread(target=leader.run), threading.Thread(target=job.work)
    thread.start()
    agent.start()
    assert silent.is_asked.wait(PATIENCE_S)
    until = time.monotonic() + 4 * LEASE_S
    while time.monotonic() < until:
        assert leader.stage is Stage.PROCESSING
        time.sleep(0.02)
    assert wait_until(lambda: job.on_redis.registry.status(job.on_redis.job_id).progress.done == 2)
    silent.answers.set()
    thread.join(PATIENCE_S)
    agent.join(PATIENCE_S)
    assert (job.result().state, job.result().progress.done) == (JobState.COMPLETED, 4)


def test_it_hears_of_a_cancel(led: Callable[..., Led], silent: Silent) -> None:
    job = led(0, inputs="s3://bucket/in")
    thread = threading.Thread(target=job.leader(seconds=LEASE_S).run)
    thread.start()
    assert silent.is_asked.wait(PATIENCE_S)
    job.folder.record_cancel(0)
    job.on_redis.registry.move(job.on_redis.job_id, JobState.CANCELED)
    thread.join(5)
    assert not silent.answers.is_set()
    assert not thread.is_alive()
    assert job.result().state is JobState.CANCELED


def test_a_store_that_stays_away_fails_the_job_when_its_time_is_over(
    led: Callable[..., Led], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> object:
        raise StoreAway(5, "Please reduce your request rate", "s3://bucket/in")

    monkeypatch.setattr(ObjectStorage, "files", away)
    monkeypatch.setattr("parallelrun_master.policy.setbacks.pause_s", lambda count: 0.01)
    job = led(0, inputs="s3://bucket/in", task_overhead_timeout=2)
    tries = 0
    assert not job.is_led_to_its_end()
    before = time.monotonic()
    while not job.is_led_to_its_end():
        tries += 1
        assert time.monotonic() - before < PATIENCE_S
    failure = job.result().failure
    assert failure is not None
    assert (tries > 0, time.monotonic() - before > 1) == (True, True)
    assert failure.code == "INPUT_UNREADABLE"
    assert "Please reduce your request rate" in failure.summary
    assert "task_overhead_timeout" in failure.hint
