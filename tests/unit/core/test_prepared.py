"""A job that was prepared becomes one with an id and names of its own."""

from __future__ import annotations

from parallelrun_core.folder.records import JobRecord
from parallelrun_core.intake.prepared import JOB_ID, TRIGGER_TIME, job_of


def test_what_each_job_has_for_itself_is_filled_in_wherever_it_stands() -> None:
    spec = {"output": f"/out/{JOB_ID}", "steps": [{"a": f"{TRIGGER_TIME}/{JOB_ID}"}], "mini_batch_size": 5}
    prepared = JobRecord(job_id="", submitted=0, code="c", spec=spec, notes=["a note"])

    made = job_of(prepared, "job_1", submitted=7.0, values={TRIGGER_TIME: "now"}, note="made by x")

    assert made.spec == {"output": "/out/job_1", "steps": [{"a": "now/job_1"}], "mini_batch_size": 5}
    assert (made.job_id, made.submitted, made.code, made.notes) == ("job_1", 7.0, "c", ["a note", "made by x"])
    assert prepared.spec is spec
    assert prepared.notes == ["a note"]
