"""Pipelines over REST: what is refused at submission and where, what is stored, and what is shown of them."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_api.routes.events import masked_data
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Parent
from parallelrun_core.ids import job_id_from
from parallelrun_core.intake.launching import launch
from parallelrun_core.pipelines.records import StepRecord, write_record
from parallelrun_core.store.event_stream import EventId, StreamEvent
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import ENTRY_SCRIPT, Site, footprint
from tests.integration.api.server import Master
from tests.unit.core.factories import outcome

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

TO_ROWS = {"outputs": {"rows": {"type": "uri_file"}}, "append_row_to": "rows"}


def step(site: Site, **changes: Any) -> dict[str, Any]:
    """A step that reads the data of the site."""
    return {"type": "parallel", "job": site.spec(**TO_ROWS, **changes)}


def after(site: Site, name: str, **changes: Any) -> dict[str, Any]:
    """A step that reads what another one makes."""
    job = site.spec(**TO_ROWS, **{"inputs": None, **changes})
    return {"type": "parallel", "job": job, "inputs_from": {"data": {"step": name, "output": "rows"}}}


def pipeline(**steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "pipeline", "name": "nightly", "steps": steps}


def problems(answer: httpx.Response) -> dict[str, str]:
    return {each["pointer"]: each["message"] for each in answer.json()["errors"]}


def test_the_problems_of_all_steps_are_told_at_once_each_at_its_place(
    api: httpx.Client, site: Site, root: Path
) -> None:
    (site.code / "broken.py").write_text("def run(:\n")
    inner = {"steps": {"deep": step(site, inputs={"data": "/no/such/thing"})}}
    document = pipeline(
        prepare=step(site, inputs={"data": str(site.folder / "nothing")}),
        score=after(site, "prepare", entry_script="missing.py"),
        report=after(site, "score", code="/no/code"),
        more={"type": "pipeline", "job": inner},
    )
    assert api.post("/v1/jobs", json=pipeline(only=step(site))).status_code == 202
    before = footprint(root)

    answer = api.post("/v1/jobs", json=document)

    assert answer.status_code == 422
    assert set(problems(answer)) == {
        "/steps/prepare/job/inputs/data/path",
        "/steps/report/job/code",
        "/steps/more/job/steps/deep/job/inputs/data/path",
    }
    document["steps"] = {"prepare": step(site), "score": after(site, "prepare", entry_script="missing.py"),
                         "report": after(site, "prepare", entry_script="broken.py")}  # fmt: skip
    answer = api.post("/v1/jobs", json=document)
    assert set(problems(answer)) == {"/steps/score/job/entry_script", "/steps/report/job/entry_script"}
    assert footprint(root) == before


def test_two_steps_or_two_jobs_cannot_write_the_same_file(api: httpx.Client, site: Site) -> None:
    rows = {"outputs": {"rows": {"type": "uri_file", "path": str(site.folder / "rows.txt")}}, "append_row_to": "rows"}
    first = {"type": "parallel", "job": site.spec(**rows)}
    second = {"type": "parallel", "job": site.spec(**rows)}

    answer = api.post("/v1/jobs", json=pipeline(first=first, second=second))
    assert answer.status_code == 422
    assert problems(answer) == {
        "/steps/second/job/outputs/rows/path": "the step 'first' writes its rows to 'rows.txt' there, too"
    }

    accepted = api.post("/v1/jobs", json=pipeline(first=first)).json()["id"]
    for document in (pipeline(again=first), site.spec(**rows)):
        answer = api.post("/v1/jobs", json=document)
        assert answer.status_code == 409
        assert accepted in next(iter(problems(answer).values()))
    api.post(f"/v1/jobs/{accepted}:cancel")
    assert api.post("/v1/jobs", json=site.spec(**rows)).status_code == 202


def test_the_file_of_an_output_of_the_pipeline_is_that_of_its_step(api: httpx.Client, site: Site) -> None:
    taken = site.folder / "rows.txt"
    taken.write_text("there already\n")
    document = pipeline(only={**step(site), "outputs_to": {"rows": "all"}})
    of = {"step": "only", "output": "rows"}
    document["outputs"] = {"all": {"type": "uri_file", "path": str(taken), "of": of}}

    answer = api.post("/v1/jobs", json=document)

    assert answer.status_code == 409
    assert list(problems(answer)) == ["/steps/only/job/outputs/rows/path"]


def zipped(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, text in files.items():
            made.writestr(name.replace("__", "/") + ".py", text)
    return buffer.getvalue()


def test_one_zip_has_the_code_of_all_steps_and_equal_code_is_stored_once(
    api: httpx.Client, site: Site, root: Path
) -> None:
    document = pipeline(
        a=step(site, code="prep"), b=after(site, "a", code="./prep"), c=after(site, "a", code="same"),
        d=after(site, "a", code="other"), e=step(site),
    )  # fmt: skip
    code = zipped(prep__main=ENTRY_SCRIPT, same__main=ENTRY_SCRIPT, other__main=ENTRY_SCRIPT + "# another\n")

    answer = api.post("/v1/jobs", data={"spec": json.dumps(document)}, files={"code": code})

    assert answer.status_code == 202, answer.text
    record = JobFolder(root, answer.json()["id"]).record()
    snapshots = {name: each["code"] for name, each in record.spec["steps"].items()}
    assert snapshots["a"] == snapshots["b"] == snapshots["c"] == snapshots["e"] != snapshots["d"]
    assert (root / "code" / snapshots["d"] / "main.py").read_text() == ENTRY_SCRIPT + "# another\n"


def test_a_folder_that_is_not_in_the_zip_is_named_with_those_that_are(api: httpx.Client, site: Site) -> None:
    document = pipeline(a=step(site, code="prep"), b=step(site, code="../prep"), c=step(site, code="there"))
    code = zipped(there__main=ENTRY_SCRIPT)

    answer = api.post("/v1/jobs", data={"spec": json.dumps(document)}, files={"code": code})

    assert answer.status_code == 422
    hints = {each["pointer"]: each["hint"] for each in answer.json()["errors"]}
    assert set(hints) == {"/steps/a/job/code", "/steps/b/job/code"}
    assert "there" in hints["/steps/a/job/code"]


def test_the_same_key_gives_the_same_pipeline(api: httpx.Client, site: Site, key: str) -> None:
    answers = [api.post("/v1/jobs", json=pipeline(only=step(site)), headers={"Idempotency-Key": key}) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_values_of_variables_of_steps_are_masked(api: httpx.Client, site: Site, root: Path) -> None:
    secret = "a long secret"
    inner = {"steps": {"deep": step(site, environment_variables={"B": secret + " of a deep step"})}}
    document = pipeline(only=step(site, environment_variables={"A": secret}), more={"type": "pipeline", "job": inner})

    answer = api.post("/v1/jobs", json=document)

    job = answer.json()["id"]
    decide(root, job, "only", action="fail", why=f"it said {secret}")
    for path in (f"/v1/jobs/{job}", "/v1/jobs"):
        assert secret not in api.get(path).text
    assert secret not in answer.text
    assert api.get(f"/v1/jobs/{job}").json()["steps"][0]["why"] == "it said ***"


def decide(root: Path, pipeline: str, name: str, **fields: Any) -> StepRecord:
    """What a turn of the pipeline's leader would decide."""
    record = StepRecord(step=name, generation=0, at=time.time(), **fields)
    return write_record(JobFolder(root, pipeline), record)


def begun(redis: Redis, root: Path, job: str, name: str) -> str:
    """Begin a step, as a turn of the pipeline's leader would; returns the job."""
    parent = JobFolder(root, job).record()
    child = job_id_from(job, name, "0")
    decide(root, job, name, action="start", job=child)
    given = parent.pipeline_spec().steps[name]
    paths = dict.fromkeys(given.inputs_from, "/data")
    spec = given.pipeline_spec(paths) if given.type == "pipeline" else given.job_spec(paths)
    document = spec.model_dump(mode="json")
    record = JobRecord(
        job_id=child, submitted=time.time(), code=given.code, spec=document, places=parent.places,
        parent=Parent(job_id=job, step=name, owner=job),
    )  # fmt: skip
    launch(redis, root, record)
    return child


def test_a_pipeline_is_shown_with_its_steps_and_a_step_with_its_pipeline(
    api: httpx.Client, site: Site, root: Path, redis: Redis, master: Master
) -> None:
    document = pipeline(first=step(site), second=after(site, "first"), third=after(site, "second"))
    document["outputs"] = {"all": {"type": "uri_file", "of": {"step": "second", "output": "rows"}}}
    document["steps"]["second"]["outputs_to"] = {"rows": "all"}
    job = api.post("/v1/jobs", json=document).json()
    assert (job["type"], job["parent"]) == ("pipeline", None)
    assert [(each["name"], each["state"], each["needs"]) for each in job["steps"]] == [
        ("first", "waiting", []), ("second", "waiting", ["first"]), ("third", "waiting", ["second"])
    ]  # fmt: skip
    assert job["outputs"] == [{"name": "all", "type": "uri_file", "step": "second", "path": None}]

    first = begun(redis, root, job["id"], "first")
    shown = api.get(f"/v1/jobs/{job['id']}").json()["steps"][0]
    assert (shown["job"], shown["link"]) == (first, f"/v1/jobs/{first}")
    assert (shown["state"], shown["job_state"]) == ("running", "queued")
    tag = api.get(f"/v1/jobs/{job['id']}").headers["ETag"]
    child = api.get(f"/v1/jobs/{first}").json()
    assert (child["type"], child["parent"]) == ("parallel", {"job": job["id"], "step": "first"})

    master.begin(first)
    master.end(first, JobState.COMPLETED, rows=b"1\n")
    decide(root, job["id"], "third", action="skip", why="its condition is false")
    second = begun(redis, root, job["id"], "second")
    answer = api.get(f"/v1/jobs/{job['id']}", headers={"If-None-Match": tag})
    steps = {each["name"]: each for each in answer.json()["steps"]}
    assert {name: each["state"] for name, each in steps.items()} == {
        "first": "completed", "second": "running", "third": "skipped"
    }  # fmt: skip
    assert steps["first"]["progress"]["done"] == 3
    assert steps["third"]["why"] == "its condition is false"
    assert answer.json()["outputs"][0]["path"] == str(JobFolder(root, second).outputs / "rows")


def test_lists_leave_jobs_of_steps_out_unless_they_are_asked_for(
    api: httpx.Client, site: Site, root: Path, redis: Redis
) -> None:
    job = api.post("/v1/jobs", json=pipeline(first=step(site), second=step(site))).json()["id"]
    children = {begun(redis, root, job, name) for name in ("first", "second")}

    def listed(**params: str) -> set[str]:
        return {each["id"] for each in api.get("/v1/jobs", params={"limit": "200", **params}).json()["items"]}

    for _ in range(2):  # also when it is known who is a step
        assert job in listed()
        assert not listed() & children
        assert listed(parent=job) == children
        assert children | {job} <= listed(steps="true")
    (shown,) = [each for each in api.get("/v1/jobs?limit=200").json()["items"] if each["id"] == job]
    assert shown["steps"] == []
    assert "steps" not in shown["spec"]
    assert api.get("/v1/jobs", params={"parent": "no job"}).status_code == 422


def test_outputs_of_a_pipeline_are_those_of_the_steps_that_made_them(
    api: httpx.Client, site: Site, root: Path, redis: Redis, master: Master
) -> None:
    document = pipeline(first=step(site), second=step(site))
    document["outputs"] = {"all": {"type": "uri_file", "of": {"step": "first", "output": "rows"}}}
    document["steps"]["first"]["outputs_to"] = {"rows": "all"}
    job = api.post("/v1/jobs", json=document).json()["id"]
    path = f"/v1/jobs/{job}/outputs"
    assert api.get(path).status_code == 404
    for name in ("first", "second"):
        child = begun(redis, root, job, name)
        master.begin(child)
        master.end(child, JobState.COMPLETED, rows=name.encode())

    assert [each["path"] for each in api.get(path).json()["items"]] == ["all/rows", "second/rows"]
    assert api.get(f"{path}/all/rows").content == b"first"
    assert api.get(f"{path}/second/rows").content == b"second"
    assert api.get(f"{path}/first/rows").status_code == 404


def test_a_pipeline_has_no_mini_batches_and_says_so(api: httpx.Client, site: Site) -> None:
    job = api.post("/v1/jobs", json=pipeline(only=step(site))).json()["id"]
    answer = api.get(f"/v1/jobs/{job}/mini-batches")
    assert answer.status_code == 409
    assert "is a pipeline" in answer.json()["detail"]
    for of in ("logs", "metrics", "storage"):
        assert api.get(f"/v1/jobs/{job}/{of}").status_code == 200


def test_pipelines_nested_too_deep_are_refused(api: httpx.Client, site: Site) -> None:
    document = pipeline(only=step(site))
    for _ in range(9):
        document = {"type": "pipeline", "steps": {"in": {"type": "pipeline", "job": document}}}
    answer = api.post("/v1/jobs", json=document)
    assert answer.status_code == 422
    assert "deep" in answer.text


def test_a_step_cannot_take_over_from_an_earlier_job(api: httpx.Client, site: Site, job_id: str) -> None:
    answer = api.post("/v1/jobs", json=pipeline(only=step(site, resume_from=job_id)))
    assert list(problems(answer)) == ["/steps/only/job/resume_from"]
    made = api.post("/v1/jobs", json=pipeline(only=step(site))).json()["id"]
    answer = api.post("/v1/jobs", json=site.spec(resume_from=made))
    assert "is a pipeline" in problems(answer)["/resume_from"]


def test_a_pipeline_takes_steps_over_only_from_one_that_has_ended(
    api: httpx.Client, site: Site, root: Path, job_id: str
) -> None:
    def submit(earlier: str, **changes: Any) -> httpx.Response:
        return api.post("/v1/jobs", json={**pipeline(only=step(site)), "resume_from": earlier, **changes})

    earlier = api.post("/v1/jobs", json=pipeline(only=step(site))).json()["id"]
    for answer, status, said in (
        (submit("job_" + "0" * 20), 422, "there is no job"),
        (submit(job_id), 422, "is no pipeline"),
        (submit(earlier), 409, "has not ended"),
        (submit(earlier, force_rerun=True), 422, "with force_rerun, nothing is taken over"),
    ):
        assert (answer.status_code, said in problems(answer)["/resume_from"]) == (status, True), answer.text
    ends_with_failures(JobFolder(root, earlier))
    assert submit(earlier).status_code == 202
    inner = {"type": "pipeline", "job": {"steps": {"deep": step(site)}, "resume_from": earlier}}
    answer = api.post("/v1/jobs", json=pipeline(inner=inner))
    assert "by itself" in problems(answer)["/steps/inner/job/resume_from"]


def test_the_job_of_a_step_cannot_go_on_by_itself_while_its_pipeline_runs(
    api: httpx.Client, site: Site, root: Path, redis: Redis, master: Master
) -> None:
    job = api.post("/v1/jobs", json=pipeline(only=step(site))).json()["id"]
    child = begun(redis, root, job, "only")
    master.begin(child)
    master.end(child, JobState.FAILED)
    for verb in ("resume", "retry"):
        answer = api.post(f"/v1/jobs/{child}:{verb}")
        assert answer.status_code == 409
        assert job in answer.json()["detail"]


def test_a_step_is_not_reopened_while_an_outer_pipeline_runs(
    api: httpx.Client, site: Site, root: Path, redis: Redis, master: Master
) -> None:
    outer = {"type": "pipeline", "job": {"steps": {"deep": step(site)}}}
    job = api.post("/v1/jobs", json=pipeline(inner=outer)).json()["id"]
    inner = begun(redis, root, job, "inner")
    child = begun(redis, root, inner, "deep")
    master.begin(child)
    master.end(child, JobState.FAILED)
    ends = JobResult(job_id=inner, state=JobState.COMPLETED, started=1.0, ended=2.0, progress=Progress())
    JobFolder(root, inner).conclude(ends)
    answer = api.post(f"/v1/jobs/{child}:retry")
    assert answer.status_code == 409
    assert f"the pipeline {job}, which has not ended" in answer.json()["detail"]


def ends_with_failures(folder: JobFolder) -> None:
    """A job completes, though something in it has failed."""
    progress = Progress(done=2, failed=1)
    ends = JobResult(job_id=folder.job_id, state=JobState.COMPLETED, started=1.0, ended=2.0, progress=progress)
    folder.conclude(ends)


def test_what_would_write_into_a_version_of_an_asset_is_not_retried(
    api: httpx.Client, site: Site, root: Path, redis: Redis, master: Master
) -> None:
    named = {"outputs": {"rows": {"type": "uri_file", "asset": {"name": "scores"}}}, "append_row_to": "rows"}
    plain = api.post("/v1/jobs", json=site.spec(**named)).json()["id"]
    master.decide(plain, 1, [[outcome(0, status="failed", rows=0, failure=Failure("RUN_EXCEPTION", "no"))]])
    ends_with_failures(JobFolder(root, plain))
    answer = api.post(f"/v1/jobs/{plain}:retry")
    assert answer.status_code == 409
    assert f"with resume_from: {plain}" in answer.json()["detail"]
    job = api.post("/v1/jobs", json=pipeline(only={"type": "parallel", "job": site.spec(**named)})).json()["id"]
    ends_with_failures(JobFolder(root, begun(redis, root, job, "only")))
    ends_with_failures(JobFolder(root, job))
    answer = api.post(f"/v1/jobs/{job}:retry")
    assert answer.status_code == 409
    assert "Submit it again: such a step runs anew" in answer.json()["detail"]


def test_what_a_pipeline_tells_of_its_steps_is_masked() -> None:
    told = {"step": "score", "state": "failed", "job_id": "", "why": "it said a long secret"}
    spec = {"type": "pipeline", "steps": {"score": {"job": {"environment_variables": {"A": "a long secret"}}}}}
    data = masked_data(StreamEvent(EventId(1, 0), "step", json.dumps(told)), Mask(spec))
    assert json.loads(data) == {**told, "why": "it said ***"}
