"""What the entry script of a job has logged, over REST."""

from __future__ import annotations

import json

import httpx
import pytest

from parallelrun import Client
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_worker.script_api.metrics import MetricLog
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


def test_a_job_that_logs_nothing_has_an_empty_report(api: httpx.Client, job_id: str) -> None:
    assert api.get(f"/v1/jobs/{job_id}/metrics").json() == {"items": [], "left_out": 0}
    assert api.get("/v1/jobs/job_00000000000000000000/metrics").status_code == 404


def test_what_processes_have_logged_is_put_together(api: httpx.Client, job_id: str, shared_api: ApiServer) -> None:
    folder = JobFolder(shared_api.root, job_id).logs / "user" / "metrics" / "node0"
    for number in range(2):
        log = MetricLog(str(folder / f"process{number:03d}.jsonl"))
        log.log("loss", 1 / (number + 1), step=number)
        log.log("text", "x" * (64 << 10))
        log.close()
    wild = {"time": 1e300, "name": "wild", "value": 2**70}
    (folder / "wild.jsonl").write_text(json.dumps(wild) + '\n{"time": -1e9, "name": "wild", "value": 1}\n')

    report = api.get(f"/v1/jobs/{job_id}/metrics").json()

    assert report["left_out"] == 2
    loss, odd = report["items"]
    assert (loss["name"], loss["count"], [point["value"] for point in loss["points"]]) == ("loss", 2, [1.0, 0.5])
    assert [(point["step"], point["source"], point["process"]) for point in loss["points"]] == [
        (0, "node0", "process000"), (1, "node0", "process001"),
    ]  # fmt: skip
    assert [point["time"] for point in odd["points"]] == ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z"]
    with Client(f"http://127.0.0.1:{shared_api.port}") as client:
        first = next(client.jobs.metrics(job_id))
        assert (first.name, first.points[-1].step) == ("loss", 1)


def test_a_batch_deployment_is_accepted_with_its_data(api: httpx.Client, shared_api: ApiServer) -> None:
    home = shared_api.root.parent / "deployment"
    for name in ("src", "data", "model"):
        (home / name).mkdir(parents=True)
        (home / name / "score.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    deployment = {
        "endpoint_name": "flowers", "type": "model", "model": {"path": str(home / "model")},
        "code_configuration": {"code": str(home / "src"), "scoring_script": "score.py"},
    }  # fmt: skip
    refused = api.post("/v1/jobs", json=deployment)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/inputs")
    job = api.post("/v1/jobs", json=deployment | {"inputs": {"data": str(home / "data")}}).json()
    assert (job["name"], job["spec"]["append_row_file_name"]) == ("flowers", "predictions.csv")
