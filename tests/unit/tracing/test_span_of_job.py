"""The ids of the span of a job follow from what was submitted, for everybody alike."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.job_span import JobSpan, span_of, variables_of
from parallelrun_core.folder.records import JobRecord, Parent, Reopening
from parallelrun_core.ids import new_job_id
from parallelrun_core.tracing.sampling import Sampler
from parallelrun_core.tracing.switch import Tracing

GIVEN = f"00-{'a' * 32}-{'b' * 16}-01"
UNSAMPLED = f"00-{'a' * 32}-{'b' * 16}-00"


def job(root: Path, *, traceparent: str = "", parent: Parent | None = None) -> tuple[JobFolder, JobRecord]:
    folder = JobFolder(root, new_job_id())
    record = JobRecord(
        job_id=folder.job_id, submitted=1.0, code="", spec={"type": "pipeline"}, traceparent=traceparent, parent=parent
    )
    folder.create(record)
    return folder, record


def span(made: tuple[JobFolder, JobRecord], sampler: Sampler | None = None) -> JobSpan:
    return span_of(*made, made[0].generation(), sampler or Sampler())


def test_a_job_has_a_trace_of_its_own(tmp_path: Path) -> None:
    one, other = job(tmp_path), job(tmp_path)

    assert span(one) == span(one)
    assert span(one).parent is None
    assert span(one).span.is_sampled
    assert span(one).span.trace_id != span(other).span.trace_id
    assert not span(one, Sampler(share=0.0)).span.is_sampled


def test_a_job_belongs_to_the_trace_that_its_submission_names(tmp_path: Path) -> None:
    own, parent = span(job(tmp_path, traceparent=GIVEN))
    assert parent is not None
    assert (own.trace_id, parent.traceparent, own.is_sampled) == ("a" * 32, GIVEN, True)
    assert not span(job(tmp_path, traceparent=UNSAMPLED)).span.is_sampled
    assert span(job(tmp_path, traceparent=UNSAMPLED), Sampler(follows_parent=False)).span.is_sampled


def test_each_generation_is_a_span_of_the_same_trace(tmp_path: Path) -> None:
    made = job(tmp_path)
    before = span(made)
    made[0].reopen(Reopening(generation=1, at=2.0, retry_failed=True))
    after = span(made)
    assert after.span.trace_id == before.span.trace_id
    assert after.span.span_id != before.span.span_id


def test_a_step_is_part_of_its_pipeline_at_any_depth(tmp_path: Path) -> None:
    outer = job(tmp_path, traceparent=GIVEN)
    owner = outer[0].job_id
    inner = job(tmp_path, parent=Parent(job_id=owner, step="a", owner=owner))
    step = job(tmp_path, parent=Parent(job_id=inner[0].job_id, step="b", owner=owner))

    assert span(inner).parent == span(outer).span
    assert span(step).parent == span(inner).span
    assert {span(each).span.trace_id for each in (outer, inner, step)} == {"a" * 32}


def test_scripts_are_told_of_a_span_that_somebody_sends(tmp_path: Path) -> None:
    """Without traces of ours that is the span that was named: ours would be missing in between."""
    alone, named = job(tmp_path), job(tmp_path, traceparent=GIVEN)
    tracing = Tracing(sampler=Sampler())

    assert variables_of(*alone, 0, None) == {}
    assert variables_of(*named, 0, None) == {"TRACEPARENT": GIVEN}
    assert variables_of(*named, 0, tracing) == {"TRACEPARENT": span(named).span.traceparent}
    assert variables_of(*alone, 0, tracing) == {"TRACEPARENT": span(alone).span.traceparent}
