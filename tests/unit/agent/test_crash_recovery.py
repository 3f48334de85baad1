"""What a crash of the machine may leave in the cache."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from parallelrun_agent.staging import crash_recovery
from parallelrun_agent.staging.cache import StageCache
from parallelrun_agent.staging.crash_recovery import NO_DOUBT, doubt_of, end_doubt
from parallelrun_core.storage.interface import Version
from tests.twins.sabotage import expect_failure

NAMES = [f"{name}" for name in range(20)]


def version(name: str) -> Version:
    return Version(3, 0.0, name)


def url(name: str) -> str:
    return f"s3://b/{name}"


class Machine:
    """One that crashes, with a cache that has three bytes of each name."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._uses = 0
        self._boots = 0
        self._monkeypatch = monkeypatch
        self.boot()

    def boot(self) -> None:
        """All that has happened so far was earlier by then, also by a clock that ticks every few milliseconds."""
        before = _now()
        while _now() <= before:
            time.sleep(0.001)
        self._boots += 1
        self._monkeypatch.setattr(crash_recovery, "_boot_id", lambda boot=self._boots: f"boot {boot}")

    def age(self, seconds: float) -> None:
        """As if all that was done here by now had been done earlier."""
        for path in (*self.folder.rglob("objects/*/*"), self.folder / ".held"):
            at = path.stat().st_mtime - seconds
            os.utime(path, (at, at))

    def fetch(self, cache: StageCache, *names: str) -> None:
        for name in names:
            cache.reserve(3)
            self._uses += 1
            cache.put(url(name), version(name), memoryview(b"abc"), str(self.folder / f"used {self._uses}"))

    def use(self, cache: StageCache, *names: str) -> list[str]:
        """Those that are there."""
        there = []
        for name in names:
            self._uses += 1
            if cache.take(url(name), version(name), str(self.folder / f"used {self._uses}")):
                there.append(name)
        return there


def _now() -> float:
    """The time that the file system gives to a file that is made now."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_mtime


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def cache_of(machine: Machine) -> StageCache:
    cache = StageCache(machine.folder, 1 << 20)
    known(cache)
    return cache


def known(cache: StageCache) -> None:
    """Wait until all that is there was looked at."""
    for thread in threading.enumerate():
        if thread.name == "stage-room":
            thread.join(30)


def test_a_restarted_agent_on_the_same_boot_finds_what_it_had(machine: Machine) -> None:
    machine.fetch(StageCache(machine.folder, 1 << 20), *NAMES)

    assert machine.use(StageCache(machine.folder, 1 << 20), *NAMES) == NAMES


def test_what_was_fetched_shortly_before_a_crash_is_not_believed(machine: Machine) -> None:
    before = cache_of(machine)
    machine.fetch(before, "long ago", "used again")
    machine.age(300)
    machine.use(before, "used again")
    machine.fetch(before, "lately")
    before._room.note()
    for left in machine.folder.glob("used *"):
        left.unlink()  # as the tree of a dead agent is removed, before the cache is used
    machine.boot()

    after = StageCache(machine.folder, 1 << 20)

    assert machine.use(after, "long ago", "used again", "lately") == ["long ago", "used again"]
    known(after)
    machine.fetch(after, "lately")
    assert machine.use(after, "long ago", "lately") == ["long ago", "lately"]


def test_a_cache_that_believes_all_that_is_there_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash_recovery, "_UNSAFE_S", -1000.0)
    with expect_failure():
        test_what_was_fetched_shortly_before_a_crash_is_not_believed(machine)


def test_what_nobody_has_noted_is_not_believed(machine: Machine) -> None:
    machine.fetch(cache_of(machine), *NAMES)
    machine.age(10)
    (machine.folder / ".held").unlink()
    machine.boot()

    after = cache_of(machine)

    assert [path for path in after.folder.rglob("*") if path.is_file()] == []


def test_what_is_in_doubt_stays_so_for_all_agents_until_it_was_removed(tmp_path: Path) -> None:
    doubt = doubt_of(tmp_path, 1e9, "boot 1")
    assert doubt.covers(1e9 - 60)
    assert not doubt.covers(1e9 - 300)
    assert not doubt.covers(time.time() + 1)
    assert doubt_of(tmp_path, time.time(), "boot 1") == doubt, "for another agent, too"

    again = doubt_of(tmp_path, 1.1e9, "boot 2")  # another crash, before all of it was looked at
    assert again.since == doubt.since

    end_doubt(tmp_path, doubt)
    assert doubt_of(tmp_path, 0, "boot 2") == again, "what is in doubt by now is more than that"
    end_doubt(tmp_path, again)
    assert doubt_of(tmp_path, 0, "boot 2") == NO_DOUBT
    assert doubt_of(tmp_path, 1.2e9, "boot 3").since > again.since


def test_a_second_agent_leaves_what_the_first_one_fetches_after_a_crash(machine: Machine) -> None:
    machine.boot()
    first = StageCache(machine.folder, 1 << 20)
    with first.begin(url("a"), Version(3, 0.0)) as new:
        cache_of(machine)
        os.write(new.fd, b"abc")
        new.keep(str(machine.folder / "used"))

    assert first.take(url("a"), Version(3, 0.0), str(machine.folder / "again"))
