"""Pictures of many tries are those that one gets by looking at each of them."""

from __future__ import annotations

import errno
import os
import random
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest

from parallelrun_api.tries import tiles as pictures
from parallelrun_api.tries import timeline as timelines
from parallelrun_api.tries.histories import Histories
from parallelrun_api.tries.throughput import figures, throughput
from parallelrun_api.tries.tiles import tiles
from parallelrun_api.tries.timeline import TimeWindow, timeline
from parallelrun_api.views.failed_items import kinds_of_errors
from parallelrun_core.errors import Conflict, CorruptLog
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.record_log import RecordReader, RecordWriter, read_records
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.term_log import Header
from parallelrun_core.tries import followed_log
from parallelrun_core.tries import history as histories
from parallelrun_core.tries import snapshot as snapshots
from parallelrun_core.tries.history import History
from parallelrun_core.wire.outcome import Outcome
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState

BEGIN = 1_763_700_000.0
COUNT = 3000


def one(number: int, begin: float, run_s: float, lane: int, **changes: Any) -> Outcome:
    return Outcome(
        mini_batch=number, generation=0, status="done", token="t", tries=1, node=f"node{lane // 3}",
        process=f"process{lane % 3:03}", part="p", offset=0, length=1, crc=0, items=2, rows=2, started=begin,
        elapsed_s=run_s * 1.5, run_s=run_s, process_s=run_s, load_s=run_s / 4, **changes,
    )  # fmt: skip


def created(root: Path) -> JobFolder:
    """The folder of a job that was submitted a second before `BEGIN`."""
    folder = JobFolder(root, "job_01kav3x8n2h7q5m9c4t6")
    folder.create(JobRecord(job_id=folder.job_id, submitted=BEGIN - 1, code="", spec={}))
    return folder


@pytest.fixture
def made(tmp_path: Path) -> tuple[JobFolder, list[Outcome]]:
    """A job with tries of very different lengths, which workers of six lanes ran one after another."""
    random.seed(3)
    folder = created(tmp_path)
    ends = [BEGIN + lane * 0.7 for lane in range(6)]
    outcomes = []
    for number in random.sample(range(COUNT), COUNT):
        lane = random.randrange(6)
        outcome = one(number, ends[lane], random.lognormvariate(-2, 2), lane)
        ends[lane] += outcome.elapsed_s + random.choice([0, 0, 3])
        outcomes.append(outcome)
    log = DecisionWriter(folder.path, 1)
    for at in range(0, COUNT, 40):
        log.add(outcomes[at : at + 40])
    log.sync()
    log.close()
    return folder, outcomes


def whole(folder: JobFolder) -> History:
    """The history, all of it."""
    known = Histories(budget_s=10)
    for _ in range(100):
        if (history := known.of(folder)).read_share == 1:
            return history
    raise AssertionError("the logs have something that is never read")


@pytest.mark.parametrize("size", [1, 2, 16, 64, 256, 1024, 4096])
def test_tiles_of_every_size(made: tuple[JobFolder, list[Outcome]], size: int) -> None:
    folder, outcomes = made
    run_s = {outcome.mini_batch: outcome.run_s for outcome in outcomes}
    history = whole(folder)
    progress = Progress(scheduled=COUNT + 500)
    first = 128 if size < 256 else 1024 if size < 4096 else 0

    shown = tiles(history, progress, {COUNT, COUNT + 7}, first=first, end=None, buckets=-(-(COUNT + 500) // size))

    assert (shown.first, shown.bucket_size, shown.end) == (first, size, COUNT + 500)
    for at, begin in enumerate(range(first, COUNT + 500, size)):
        own = sorted(run_s[each] for each in range(begin, begin + size) if each in run_s)
        held = sum(begin <= each < begin + size for each in (COUNT, COUNT + 7))
        there = min(begin + size, COUNT + 500) - begin
        counts = (shown.completed[at], shown.failed[at], shown.running[at], shown.waiting[at])
        assert counts == (len(own), 0, held, there - len(own) - held)
        if own:
            least, middle, most = shown.min_run_s[at], shown.median_run_s[at], shown.max_run_s[at]
            assert (least, middle, most) == pytest.approx((own[0], own[(len(own) - 1) // 2], own[-1]), abs=1e-5)
        else:
            assert shown.median_run_s[at] is None


def test_remembered_buckets_follow_the_log(tmp_path: Path) -> None:
    folder = created(tmp_path)
    known = Histories(budget_s=10)
    log = DecisionWriter(folder.path, 1)
    for end in (10, 300, 1000):
        log.add([one(number, BEGIN + number, 0.5, 0) for number in range(log.decided.end, end)])
        log.sync()
        shown = tiles(known.of(folder), Progress(scheduled=1000), (), first=0, end=None, buckets=16)
        assert (sum(shown.completed), sum(shown.waiting)) == (end, 1000 - end)
    log.close()


def test_a_leader_that_was_paused_is_not_believed(tmp_path: Path) -> None:
    folder = created(tmp_path)
    known = Histories(budget_s=10)
    paused = DecisionWriter(folder.path, 1)
    paused.add([one(0, BEGIN, 0.5, 0)])
    paused.sync()
    DecisionWriter(folder.path, 2).close()
    assert known.of(folder).tries.count == 1
    paused.add([one(1, BEGIN, 0.5, 0)])
    paused.sync()
    paused.close()

    assert known.of(folder).tries.count == 1


@pytest.mark.parametrize("is_exact", [True, False])
def test_the_timeline_adds_up(
    made: tuple[JobFolder, list[Outcome]], is_exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outcomes = made
    if not is_exact:
        monkeypatch.setattr(timelines, "_MOST_EXACT", 0)
    history = whole(folder)

    shown = timeline(history, TimeWindow(buckets=50))

    assert (shown.resolution_s == 0) is is_exact
    assert len(shown.lanes) == 6
    for lane in shown.lanes:
        own = [each for each in outcomes if (each.node, each.process) == (lane.node, lane.process)]
        assert lane.tries == len(own)
        assert sum(lane.run) + sum(lane.load) == pytest.approx(sum(each.elapsed_s for each in own), rel=1e-3, abs=0.02)
        assert sum(lane.load) == pytest.approx(sum(each.load_s for each in own), rel=1e-3, abs=0.02)
        assert max(np.add(lane.run, lane.load)) <= shown.bucket_s * 1.001
    slowest = max(outcomes, key=lambda each: each.run_s)
    assert shown.slowest[0].mini_batch == slowest.mini_batch


def test_a_window_is_the_same_from_tries_and_from_cells(
    made: tuple[JobFolder, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    history = whole(made[0])
    length_s = timeline(history, TimeWindow()).length_s
    window = TimeWindow(begin_s=length_s * 0.2, end_s=length_s * 0.9, buckets=20)
    exact = timeline(history, window)
    monkeypatch.setattr(timelines, "_MOST_EXACT", 0)
    rough = timeline(history, window)

    assert rough.resolution_s < rough.bucket_s
    for one_lane, other in zip(exact.lanes, rough.lanes, strict=True):
        busy, about = np.add(one_lane.run, one_lane.load), np.add(other.run, other.load)
        assert np.abs(busy - about).max() <= 2 * rough.resolution_s


def test_throughput_and_progress_count_the_same_items_of_a_job_that_sums_up(tmp_path: Path) -> None:
    folder = created(tmp_path)
    outcomes = [
        msgspec.structs.replace(one(number, BEGIN + number, 0.5, 0), items=100, rows=10) for number in range(20)
    ]
    log = DecisionWriter(folder.path, 1)
    log.add(outcomes)
    log.sync()
    log.close()
    progress = Progress(items_done=200, items_failed=1800, items_short=1800)
    assert sum(each.failed_items for each in outcomes) == progress.items_failed
    assert sum(throughput(whole(folder), 100).items) == progress.items_decided


def test_throughput_counts_each_once(made: tuple[JobFolder, list[Outcome]]) -> None:
    folder, outcomes = made
    shown = throughput(whole(folder), 100)

    assert len(shown.mini_batches) <= 100
    assert sum(shown.mini_batches) == COUNT
    assert sum(shown.items) == sum(each.items for each in outcomes)
    assert shown.start is not None
    start = datetime.fromisoformat(shown.start).timestamp()
    assert shown.first_try_s == pytest.approx(min(each.started for each in outcomes) - start, abs=0.01)
    assert shown.last_try_s == pytest.approx(max(each.started + each.elapsed_s for each in outcomes) - start, abs=0.01)
    busy_s = sum(shown.busy_workers) * shown.bucket_s
    assert busy_s == pytest.approx(sum(each.elapsed_s for each in outcomes), rel=0.01)


def test_workers_with_several_in_flight_are_busy_once(tmp_path: Path) -> None:
    folder = created(tmp_path)
    log = DecisionWriter(folder.path, 1)
    log.add([one(number, BEGIN + number // 64 * 3.0, 2.0, 0) for number in range(640)])
    log.sync()
    log.close()
    waited = Progress(done=640, waits_s={"openai": 100.0}, waits_of_s=1000.0)
    assert max(throughput(whole(folder), 10).busy_workers) <= 1.0
    shown = figures(whole(folder), waited, started=BEGIN, until=BEGIN + 30)
    assert shown.busy_share == pytest.approx(1.0, abs=0.02)
    assert shown.overhead_s == pytest.approx(640 * (3.0 - 2.0 - 0.5) - 100.0), "waiting for a limit is none"


def test_a_look_reads_for_a_limited_time(
    made: tuple[JobFolder, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "_AT_ONCE", 100)
    known = Histories(budget_s=0)

    first = known.of(made[0])

    assert 0 < first.read_share < 1
    assert 100 <= first.tries.count < COUNT
    while known.of(made[0]).read_share < 1:
        pass
    assert first.tries.count == COUNT


def test_the_least_used_histories_are_forgotten(made: tuple[JobFolder, list[Outcome]]) -> None:
    folder, _ = made
    other = JobFolder(folder.root, "job_01kav3x8n2h7q5m9c4t7")
    other.create(JobRecord(job_id=other.job_id, submitted=BEGIN, code="", spec={}))
    known = Histories(most_bytes=1, budget_s=10)
    first = known.of(folder)

    known.of(other)

    assert known.of(folder) is not first
    assert pictures.tiles(known.of(folder), Progress(), (), first=0, end=None, buckets=1).completed == [COUNT]


def test_what_was_read_before_an_error_is_kept(tmp_path: Path) -> None:
    """A look that ends with an error has read some records: those after them are read next, and none is lost."""
    folder = created(tmp_path)
    log = DecisionWriter(folder.path, 1)
    for number in range(3):
        log.add([one(number, BEGIN + number, 0.5, 0)])
    log.sync()
    known, read = Histories(budget_s=10), RecordReader.read

    def fails_at_the_third(reader: RecordReader) -> bytes | None:
        payload = read(reader)
        if payload is not None and payload.startswith(b"[[2,"):
            raise CorruptLog("noise")
        return payload

    with patch.object(RecordReader, "read", fails_at_the_third), pytest.raises(CorruptLog):
        known.of(folder)
    log.close()

    assert known.of(folder).tries["mini_batch"].tolist() == [0, 1, 2]


def test_a_file_that_is_cut_costs_only_what_was_in_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = created(tmp_path)
    for term, first in ((1, 0), (2, 3)):
        log = DecisionWriter(folder.path, term)
        for number in range(first, first + 3):
            log.add([one(number, BEGIN + number, 0.5, 0)])
        log.sync()
        log.close()
    path = folder.path / "decisions.1"
    os.truncate(path, path.stat().st_size - 10)
    known = Histories(budget_s=10)

    for _ in range(2):
        history = known.of(folder)
        assert history.tries["mini_batch"].tolist() == [0, 1, 3, 4, 5]
        assert history.read_share == 1.0
    assert capsys.readouterr().out.count("decisions.1 can't be read from byte") == 1


def test_a_file_that_can_not_be_opened_costs_only_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = created(tmp_path)
    for term in (1, 2):
        log = DecisionWriter(folder.path, term)
        log.add([one(term, BEGIN, 0.5, 0)])
        log.sync()
        log.close()

    def opened(path: Path, **options: Any) -> RecordReader:
        if path.name == "decisions.1":
            raise OSError(errno.EIO, "Input/output error")
        return RecordReader(path, **options)

    with patch.object(followed_log, "RecordReader", opened):
        assert Histories(budget_s=10).of(folder).tries["mini_batch"].tolist() == [2]
    assert "decisions.1: Input/output error" in capsys.readouterr().out


def test_of_more_tries_than_fit_into_memory_no_pictures_are_made(
    made: tuple[JobFolder, list[Outcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "MOST_TRIES", COUNT - 1)
    known = Histories(budget_s=10)

    for _ in range(2):
        with pytest.raises(Conflict, match="of which no pictures are made"):
            known.of(made[0])
    assert known._histories[made[0].job_id].bytes < 1 << 20


@pytest.fixture
def snapshot(made: tuple[JobFolder, list[Outcome]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The snapshot of the job, which its leader has stored when it had ended."""
    monkeypatch.setattr(snapshots, "LEAST_TRIES", 100)
    folder, _ = made
    folder.conclude(
        JobResult(job_id=folder.job_id, state=JobState.COMPLETED, started=BEGIN, ended=BEGIN + 1e6, progress=Progress())
    )
    snapshots.keep_of(folder)
    return snapshots.path_of(folder.path)


def pictures_of(history: History) -> list[Any]:
    progress = Progress(scheduled=COUNT + 500)
    windows = TimeWindow(), TimeWindow(begin_s=3, end_s=9)
    pictures = (
        tiles(history, progress, {}, first=0, end=None, buckets=50),
        *(timeline(history, window) for window in windows),
        throughput(history, 100),
        kinds_of_errors(history),
    )
    return [*map(msgspec.to_builtins, pictures), vars_of(history)]


def vars_of(history: History) -> tuple[Any, ...]:
    return asdict(history.summary.totals), history.phases, list(history.workers), history.errors.saved()


def without_logs(folder: JobFolder) -> None:
    """Leave no record that could be read: what is shown comes from the snapshot."""
    for path in folder.path.glob("decisions.*"):
        size = path.stat().st_size
        with path.open("r+b") as file:
            start = next(read_records(path))[0]
            file.seek(start)
            file.write(bytes(size - start))


def test_snapshot_gives_the_pictures_that_the_logs_give(made: tuple[JobFolder, list[Outcome]], snapshot: Path) -> None:
    folder, _ = made
    aside = snapshot.rename(snapshot.with_name("aside"))
    from_logs = pictures_of(whole(folder))
    aside.replace(snapshot)
    without_logs(folder)
    assert pictures_of(whole(folder)) == from_logs


def test_snapshot_goes_on_with_what_is_added(made: tuple[JobFolder, list[Outcome]], snapshot: Path) -> None:
    folder, _ = made
    log = DecisionWriter(folder.path, 2)
    log.add([one(COUNT + at, BEGIN + 2e4, 2.0, 2) for at in range(200)])
    log.sync()
    log.close()
    both = pictures_of(whole(folder))
    assert sum(both[0]["completed"]) == COUNT + 200
    snapshots.keep_of(folder)
    assert pictures_of(whole(folder)) == both
    snapshot.unlink()
    assert pictures_of(whole(folder))[0] == both[0]


@pytest.mark.parametrize("at", [0, 20, 3000, -5], ids=["first", "header", "array", "end"])
def test_snapshot_that_is_damaged_is_not_used(made: tuple[JobFolder, list[Outcome]], snapshot: Path, at: int) -> None:
    folder, _ = made
    expected = pictures_of(whole(folder))
    raw = bytearray(snapshot.read_bytes())
    raw[at] ^= 0xFF
    snapshot.write_bytes(raw)
    assert pictures_of(whole(folder)) == expected
    snapshot.write_bytes(b"")
    assert pictures_of(whole(folder)) == expected


def test_snapshot_of_a_log_that_was_cut_since_is_not_used(
    made: tuple[JobFolder, list[Outcome]], snapshot: Path
) -> None:
    folder, outcomes = made
    ends = [end for end, _ in read_records(folder.path / "decisions.1")]
    accepted = {"1": ends[len(ends) // 2]}  # by a leader for which the rest came too late
    header = Header(term=2, accepted=accepted)
    writer = RecordWriter(folder.path / "decisions.2")
    writer.append(msgspec.json.encode(header))
    writer.close()
    assert 0 < sum(pictures_of(whole(folder))[0]["completed"]) < len(outcomes)


def test_histories_store_the_snapshot_of_an_earlier_release_once(
    made: tuple[JobFolder, list[Outcome]], snapshot: Path
) -> None:
    folder, _ = made
    snapshot.unlink()
    expected = pictures_of(whole(folder))
    assert snapshot.exists()
    without_logs(folder)
    assert pictures_of(whole(folder)) == expected
