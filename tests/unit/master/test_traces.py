"""Traces of jobs that have ended: what is in them, and that a collector that is away costs nothing but time."""

from __future__ import annotations

from errno import EIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from parallelrun_core.adviser.evidence import DONE, FAILED, RETRY, columns
from parallelrun_core.errors import NewerSchema
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Parent, Reopening
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.ids import new_job_id
from parallelrun_core.layout import RETRIES, Logs, outbox_of
from parallelrun_core.tracing.sampling import Sampler
from parallelrun_core.tracing.switch import Tracing
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.outcome import Failure, encode_all
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.destinations import destinations_of
from parallelrun_master.destinations.traces.delivery import TraceDelivery, TraceOrder
from parallelrun_master.destinations.traces.exporting import Exporter
from parallelrun_master.outbox.delivery import GIVE_UP_S
from parallelrun_master.outbox.entries import attempts_of, enqueue, owed
from parallelrun_master.policy.traced_tries import chosen
from tests.otlp import Collector, Received, black_hole
from tests.unit.core.factories import outcome

BEGUN = 1_800_000_000.0
GIVEN = f"00-{'a' * 32}-{'b' * 16}-01"
SECRET = "a password of somebody"
REPORT = """\
Mini-batch Id,Picked Count,Process,Process Start Time,Total,Succeeded,Failed,Elapsed Seconds,Process Seconds,\
Run Method Seconds,Status,Error Category,Error Message,Mini-batch Detail
,,n1/process000,2027-01-15T08:00:03.000000,,,,2.500000,,,ENTRY_SCRIPT_INIT_DONE,,,
,,n2/process001,2027-01-15T08:00:04.000000,,,,1.0,,,ENTRY_SCRIPT_INIT_EXCEPTION,INIT_EXCEPTION,no,
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


class Ended:
    """A job that has ended, whose trace is owed."""

    def __init__(self, root: Path, *, tries: int = 3, state: JobState = JobState.COMPLETED, **record: Any) -> None:
        self.root = root
        self.folder = JobFolder(root, new_job_id())
        self.name = f"{self.folder.job_id}.0"
        spec: dict[str, Any] = {"name": "words", "entry_script": "main.py", "inputs": {"data": {"path": "/in"}}}
        spec |= record.pop("spec", {})
        self.folder.create(JobRecord(job_id=self.folder.job_id, submitted=BEGUN, code="", spec=spec, **record))
        if not spec.get("steps"):
            self._run(tries)
        failure = JobFailure(code="ERROR_THRESHOLD", summary=f"it said {SECRET}") if state is JobState.FAILED else None
        enqueue(outbox_of(root, "traces"), self.folder.job_id, 0)
        self.folder.conclude(
            JobResult(
                job_id=self.folder.job_id, state=state, started=BEGUN + 1, ended=BEGUN + 60, failure=failure,
                progress=Progress(scheduled=tries, done=tries, items_done=tries * 5, retried=1, rows=tries * 5),
            )
        )  # fmt: skip

    def _run(self, tries: int) -> None:
        report = Logs(self.folder.logs).job_report
        report.mkdir(parents=True)
        (report / "processed_mini-batches.csv").write_text(REPORT)
        (Logs(self.folder.logs).sys / "master_role.0.txt").write_text(
            "2027-01-15 08:00:02,500|n1: setting job stage to FIRST_TASK_SCHEDULED, reason: x\n"
        )
        writer = DecisionWriter(self.folder.path, 1)
        writer.add([
            outcome(each, items=5, rows=5, node="n1", process="process000", started=BEGUN + 6 + each, elapsed_s=0.5)
            for each in range(tries)
        ])  # fmt: skip
        writer.sync()
        writer.close()
        failure = Failure(category="RUN_EXCEPTION", message=f"ValueError: {SECRET}")
        again = outcome(
            0, status="retry", items=5, rows=0, node="n2", process="process002", started=BEGUN + 5, elapsed_s=0.25,
            failure=failure,
        )  # fmt: skip
        retries = open_term(self.folder.path, RETRIES, 1)
        retries.append(encode_all([again]))
        retries.close()

    def deliver(self, *others: Ended, now: float = 100.0, most: int = 1000, sampler: Sampler | None = None) -> None:
        names, sampler = [each.name for each in (self, *others)], sampler or Sampler()
        order = TraceOrder(root=str(self.root), log_format="json", most=most, sampler=sampler, now=now, names=names)
        TraceDelivery(order, Exporter()).run()


def sent(job: Ended, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Received]:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        job.deliver(**options)
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    assert SECRET.encode() not in collector.raw
    return collector.spans


def only(spans: list[Received], name: str) -> Received:
    (span,) = [each for each in spans if each.name == name]
    return span


def test_a_trace_tells_how_the_job_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Ended(tmp_path)
    spans = sent(job, monkeypatch)

    root = only(spans, "job words")
    assert (root.begin, root.end, root.parent_id, root.service) == (BEGUN, BEGUN + 60, "", "parallelrun")
    assert root.error is None
    assert root.attributes["parallelrun.job.id"] == job.folder.job_id
    assert root.attributes["parallelrun.job.state"] == "completed"
    assert root.attributes["parallelrun.items.done"] == 15
    phases = {"queued", "list first mini-batch", "mini-batches", "finish"}
    assert {each.name: (each.begin - BEGUN, each.end - BEGUN) for each in spans if each.name in phases} == {
        "queued": (0, 1), "list first mini-batch": (1, 2.5), "mini-batches": (5, 8.5), "finish": (8.5, 60),
    }  # fmt: skip
    assert {each.parent_id for each in spans if each.name in phases} == {root.span_id}
    assert [(each.begin - BEGUN, each.end - BEGUN, each.error) for each in spans if each.name == "init"] == [
        (4, 5, "init() has failed"), (3, 5.5, None),
    ]  # fmt: skip
    tries = [each for each in spans if each.name == "mini-batch"]
    assert {each.parent_id for each in tries} == {only(spans, "mini-batches").span_id}
    failed, first, *_ = tries
    assert (failed.begin, round(failed.end - BEGUN, 3), failed.error) == (BEGUN + 5, 5.25, "RUN_EXCEPTION")
    assert failed.attributes["error.type"] == "RUN_EXCEPTION"
    assert failed.attributes["parallelrun.try.result"] == "retried"
    assert (failed.attributes["parallelrun.node"], failed.attributes["parallelrun.process"]) == ("n2", "process002")
    assert (first.attributes["parallelrun.mini_batch"], first.attributes["parallelrun.items"]) == (0, 5)
    assert (first.attributes["parallelrun.try.result"], first.error) == ("done", None)
    assert len({each.span_id for each in spans}) == len(spans)
    assert {each.trace_id for each in spans} == {root.trace_id}
    assert owed(outbox_of(tmp_path, "traces")) == []


def test_a_trace_that_is_sent_twice_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Ended(tmp_path)
    first = sent(job, monkeypatch)
    enqueue(outbox_of(tmp_path, "traces"), job.folder.job_id, 0)
    assert sent(job, monkeypatch) == first


def test_a_trace_goes_on_with_that_of_the_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = only(sent(Ended(tmp_path, traceparent=GIVEN), monkeypatch), "job words")
    assert (root.trace_id, root.parent_id) == ("a" * 32, "b" * 16)


def test_nothing_secret_is_in_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sent` looks through all that went over the wire."""
    spec = {"environment_variables": {"PASSWORD": SECRET}}
    root = only(sent(Ended(tmp_path, state=JobState.FAILED, spec=spec), monkeypatch), "job words")
    assert root.error == "ERROR_THRESHOLD: it said ***"
    assert root.attributes["error.type"] == "ERROR_THRESHOLD"


def test_a_job_of_many_mini_batches_has_a_trace_of_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = sent(Ended(tmp_path, tries=5000), monkeypatch, most=700)
    assert len([each for each in spans if each.name == "mini-batch"]) == 700
    counts = only(spans, "mini-batches").attributes
    assert (counts["parallelrun.tries"], counts["parallelrun.tries.shown"]) == (5001, 700)


def test_without_mini_batches_there_are_the_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [each.name for each in sent(Ended(tmp_path), monkeypatch, most=0)]
    assert names == ["job words", "queued", "list first mini-batch", "mini-batches", "finish"]


def test_a_pipeline_and_a_step_have_spans_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"type": "pipeline", "steps": {"count": {"job": {}}}}
    pipeline = Ended(tmp_path, spec=steps)
    step = Ended(tmp_path, parent=Parent(job_id=pipeline.folder.job_id, step="count", owner=pipeline.folder.job_id))
    (outer,) = sent(pipeline, monkeypatch)
    inner = only(sent(step, monkeypatch), "job count")
    assert (inner.trace_id, inner.parent_id) == (outer.trace_id, outer.span_id)
    assert inner.attributes["parallelrun.pipeline.step"] == "count"


def test_a_job_that_goes_on_before_it_is_sent_has_its_own_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its folder says of tries is then about another generation."""
    job = Ended(tmp_path)
    job.folder.reopen(Reopening(generation=1, at=BEGUN + 70, retry_failed=True))
    (root,) = sent(job, monkeypatch)
    assert (root.begin, root.end) == (BEGUN, BEGUN + 60)


def test_the_variables_say_who_tells_and_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of-the-collector")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/elsewhere")
        Ended(tmp_path).deliver()
    path, headers = collector.requests[0]
    assert (path, headers["api-key"], headers["content-encoding"]) == ("/elsewhere", "of-the-collector", "gzip")
    assert {each.service for each in collector.spans} == {"nightly"}


def test_what_a_collector_refuses_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Ended(tmp_path)
    with Collector(400, 200) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        job.deliver(now=100.0)
        attempts = attempts_of(outbox_of(tmp_path, "traces"), job.name)
        assert attempts is not None
        job.deliver(now=attempts.next_at - 60)
        assert len(collector.requests) == 1
        job.deliver(now=attempts.next_at)
        assert only(collector.spans, "job words").end == BEGUN + 60
    assert owed(outbox_of(tmp_path, "traces")) == []


def test_a_collector_that_never_answers_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait as long as the first one, and it is given up after a day."""
    jobs = [Ended(tmp_path) for _ in range(4)]
    with black_hole() as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        jobs[0].deliver(*jobs[1:], now=100.0)
        counts = [attempts_of(outbox_of(tmp_path, "traces"), job.name) for job in jobs]
        assert [(each.count, each.next_at > 100) for each in counts if each is not None] == [
            (1, True), (0, True), (0, True), (0, True),
        ]  # fmt: skip
        jobs[0].deliver(now=200.0 + GIVE_UP_S)
    assert jobs[0].name not in owed(outbox_of(tmp_path, "traces"))


def test_a_job_whose_records_are_damaged_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = Ended(tmp_path), Ended(tmp_path)
    for path in job.folder.path.glob("decisions.*"):
        path.write_bytes(b"")
    job.folder.layout.reopening(2).write_bytes(b"{")
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        job.deliver(other)
    assert {each.attributes["parallelrun.job.id"] for each in collector.named("job words")} == {other.folder.job_id}
    assert owed(outbox_of(tmp_path, "traces")) == []


def cannot_be_read(name: str, times: int, error: Exception) -> Any:
    """Let files of this name fail to be read, for so many times."""
    read, left = Path.read_bytes, [times]

    def failing(path: Path) -> bytes:
        if name in str(path) and left[0]:
            left[0] -= 1
            raise error
        return read(path)

    return patch.object(Path, "read_bytes", failing)


@pytest.mark.parametrize("kind", [PermissionError, NewerSchema, ValueError])
def test_what_cannot_be_read_for_a_while_is_sent_later(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it keep the others, be it a bug."""
    job, other = Ended(tmp_path), Ended(tmp_path)
    job.folder.reopen(Reopening(generation=1, at=BEGUN + 70, retry_failed=True))
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with cannot_be_read(str(job.folder.layout.reopening(1)), 1, kind("not now")):
            job.deliver(other, now=100.0)
        assert [each.attributes["parallelrun.job.id"] for each in collector.named("job words")] == [other.folder.job_id]
        attempts = attempts_of(outbox_of(tmp_path, "traces"), job.name)
        assert attempts is not None
        job.deliver(now=attempts.next_at)
        assert len(collector.named("job words")) == 2
    assert owed(outbox_of(tmp_path, "traces")) == []


def test_what_can_never_be_read_is_given_up_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Ended(tmp_path)
    job.folder.reopen(Reopening(generation=1, at=BEGUN + 70, retry_failed=True))
    with Collector() as collector, cannot_be_read(str(job.folder.layout.reopening(1)), 2, ValueError("never")):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        job.deliver(now=100.0)
        assert owed(outbox_of(tmp_path, "traces")) == [job.name]
        job.deliver(now=200.0 + GIVE_UP_S)
    assert owed(outbox_of(tmp_path, "traces")) == []
    assert not collector.requests


def test_an_end_that_the_volume_does_not_give_is_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = Ended(tmp_path), Ended(tmp_path)
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with cannot_be_read(str(job.folder.layout.result(0)), 1, OSError(EIO, "not now")):
            job.deliver(other, now=100.0)
        assert [each.attributes["parallelrun.job.id"] for each in collector.named("job words")] == [other.folder.job_id]
        attempts = attempts_of(outbox_of(tmp_path, "traces"), job.name)
        assert attempts is not None
        job.deliver(now=attempts.next_at)
        assert len(collector.named("job words")) == 2


@pytest.mark.parametrize("share,is_sent", [(1.0, True), (0.0, False)])
def test_the_trace_of_a_step_is_owed_while_its_pipeline_cannot_be_read(
    share: float, is_sent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is kept is then decided by whoever sends it."""
    pipeline = Ended(tmp_path, spec={"type": "pipeline", "steps": {"count": {"job": {}}}})
    step = Ended(tmp_path, parent=Parent(job_id=pipeline.folder.job_id, step="count", owner=pipeline.folder.job_id))
    record, sampler = step.folder.record(), Sampler(share=share)
    with cannot_be_read(str(pipeline.folder.layout.record), 1, OSError(EIO, "not now")):
        assert destinations_of(step.folder, record, 0, Tracing(sampler=sampler)) == [outbox_of(tmp_path, "traces")]
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        step.deliver(sampler=sampler)
        assert bool(collector.requests) == is_sent
    assert step.name not in owed(outbox_of(tmp_path, "traces"))


def tries(count: int, **values: Any) -> Any:
    given = {"status": np.full(count, DONE), "elapsed_s": np.ones(count)} | values
    return columns(mini_batch=np.arange(count), started_s=np.arange(count, dtype=float), **given)


def test_of_many_the_failed_and_the_slow_ones_are_shown() -> None:
    status, elapsed_s = np.full(1000, DONE), np.ones(1000)
    status[[500, 900]] = FAILED, RETRY
    elapsed_s[[7, 333]] = 50.0
    shown = chosen(tries(1000, status=status, elapsed_s=elapsed_s), 100)
    assert len(shown) == 100
    assert {500, 900, 7, 333} <= set(shown.tolist())
    assert shown.tolist() == sorted(shown.tolist())
    gaps = np.diff(shown[shown > 30])
    assert gaps.max() < 30


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 99, 100, 101])
def test_there_are_never_more_than_are_wanted(most: int) -> None:
    status = np.where(np.arange(100) % 2, FAILED, DONE)
    assert len(chosen(tries(100, status=status), most)) == min(most, 100)
