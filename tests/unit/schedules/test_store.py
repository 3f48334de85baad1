"""Schedules and what they have done, on the volume: written once, whoever else writes."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from types import MethodType

import pytest

from parallelrun_core.errors import Conflict, CorruptLog, NotFound
from parallelrun_core.ids import is_job_id, new_job_id
from parallelrun_core.schedules.fires import KEPT_FIRES
from parallelrun_core.schedules.policy import FireOutcome
from parallelrun_core.schedules.records import Revision, rfc3339_of, stamp, time_of_stamp
from parallelrun_core.schedules.store import ScheduleStore
from tests.unit.schedules.factories import MADE, fire, revision

HOUR = timedelta(hours=1)
HUNG_S = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def store(root: Path) -> ScheduleStore:
    return ScheduleStore(root)


def test_the_last_revision_counts(store: ScheduleStore, root: Path) -> None:
    with pytest.raises(NotFound, match="There is no schedule 'nightly'"):
        store.get("nightly")
    assert store.last_change() == ""
    store.put("nightly", revision())
    store.put("nightly", revision(2, is_enabled=False))

    assert store.names() == ["nightly"]
    assert store.get("nightly") == revision(2, is_enabled=False)
    with pytest.raises(NotFound, match="did you mean 'nightly'"):
        store.get("nihgtly")
    assert store.find("../nightly") is None
    (root / "schedules" / "weekly" / "fires").mkdir(parents=True)  # its first revision never came
    with pytest.raises(NotFound, match=r"There is no schedule 'weekly': there are nightly\.$"):
        store.get("weekly")
    assert store.names() == ["nightly"]


def test_of_two_who_change_a_schedule_one_is_told_so(store: ScheduleStore) -> None:
    store.put("nightly", revision())
    store.put("nightly", revision(2))

    with pytest.raises(Conflict, match="changed or deleted at the same time"):
        store.put("nightly", revision(2, is_enabled=False))
    store.remove("nightly")
    with pytest.raises(Conflict):
        store.put("nightly", revision(3))
    assert store.names() == []
    store.put("nightly", revision(schedule_id="made meanwhile"))
    with pytest.raises(Conflict):
        store.put("nightly", revision(2))
    assert store.get("nightly").schedule_id == "made meanwhile"


def test_nobody_makes_another_schedule_of_the_name_while_a_revision_is_added(
    root: Path, store: ScheduleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("nightly", revision())
    others: list[threading.Thread] = []

    def make_another() -> None:
        other = ScheduleStore(root)
        other.remove("nightly")
        other.put("nightly", revision(schedule_id="another"))

    def find(self: ScheduleStore, name: str, number: int | None = None) -> Revision | None:
        before = ScheduleStore.find(self, name, number)
        others.append(threading.Thread(target=make_another))
        others[0].start()
        others[0].join(timeout=0.2)  # it would have ended, if it did not wait
        return before

    with monkeypatch.context() as patched:
        patched.setattr(store, "find", MethodType(find, store))
        store.put("nightly", revision(2))
    others[0].join(timeout=HUNG_S)
    assert store.get("nightly") == revision(schedule_id="another")


def test_each_change_shows_in_one_number(store: ScheduleStore, root: Path) -> None:
    store.put("nightly", revision())
    numbers = [store.last_change()]
    store.put("nightly", revision(2))
    numbers.append(store.last_change())
    store.remove("nightly")
    numbers.append(store.last_change())

    assert len(set(numbers)) == 3
    (root / "schedules" / "changes.json").write_text('{"schema": 99, "last": "of a newer release"}')
    assert store.last_change() == ""


def test_what_becomes_of_a_time_is_decided_once(store: ScheduleStore) -> None:
    store.put("nightly", revision())
    fires = store.fires("nightly")
    first, second = fire(MADE), fire(MADE, outcome=FireOutcome.SKIPPED, job_id="")

    assert fires.decide(first, MADE) == first
    assert fires.decide(second, MADE) == first
    assert fires.decided() == [MADE]
    store.remove("nightly")
    with pytest.raises(NotFound):
        fires.decide(first, MADE + HOUR)


def test_the_latest_is_told_first_and_what_was_asked_for_is_no_time_of_the_schedule(
    store: ScheduleStore, root: Path
) -> None:
    store.put("nightly", revision())
    fires = store.fires("nightly")
    manual = fire(MADE + 1.5 * HOUR, outcome=FireOutcome.MANUAL, job_id=new_job_id())
    fires.record_manual(manual, MADE + 1.5 * HOUR)
    for hours in (2, 1):
        fires.decide(fire(MADE + hours * HOUR), MADE + hours * HOUR)
    (root / "schedules" / "nightly" / "fires" / f"{stamp(MADE)}.json").write_text("{")

    assert [each for _, each in fires.latest_first()] == [fire(MADE + 2 * HOUR), manual, fire(MADE + HOUR)]
    assert fires.decided() == [MADE, MADE + HOUR, MADE + 2 * HOUR]


def test_only_so_much_is_remembered(store: ScheduleStore, root: Path) -> None:
    store.put("nightly", revision())
    fires = store.fires("nightly")
    times = [MADE + number * HOUR for number in range(KEPT_FIRES + KEPT_FIRES // 10)]
    for due in times:
        (root / "schedules" / "nightly" / "fires" / f"{stamp(due)}.json").write_text("{}")
        fires.note_launched(due)
    assert fires.is_launched(times[0])

    fires.trim()

    assert fires.decided() == times[-KEPT_FIRES:]
    assert not fires.is_launched(times[0])
    assert fires.is_launched(times[-1])


def test_the_id_of_a_job_is_that_of_its_schedule_and_time() -> None:
    ids = {
        revision().job_id(MADE),
        revision().job_id(MADE + HOUR),
        revision(schedule_id="another").job_id(MADE),
    }

    assert len(ids) == 3
    assert all(map(is_job_id, ids))
    assert revision(7, trigger={}).job_id(MADE) in ids
    assert revision().job_id(MADE) < revision().job_id(MADE + HOUR)


def test_a_trigger_that_this_release_does_not_know_is_damage() -> None:
    with pytest.raises(CorruptLog, match="can't be read"):
        revision(trigger={"type": "moon", "phase": "full"}).due()


def test_times_as_names_of_files() -> None:
    assert stamp(MADE) == "20261123T040000Z"
    assert time_of_stamp(stamp(MADE)) == MADE
    assert time_of_stamp("manual") is None
    assert rfc3339_of(MADE) == "2026-11-23T04:00:00Z"
