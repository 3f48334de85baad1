"""What a job has asked of object stores."""

from __future__ import annotations

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.storage_report import RequestReport
from parallelrun_core.storage.objects.meters import asked_again, metered
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


def test_a_job_without_stores_has_an_empty_report(api: httpx.Client, job_id: str) -> None:
    assert api.get(f"/v1/jobs/{job_id}/storage").json() == {"items": []}
    assert api.get("/v1/jobs/job_00000000000000000000/storage").status_code == 404


def test_what_processes_have_asked_is_put_together(api: httpx.Client, job_id: str, shared_api: ApiServer) -> None:
    logs = JobFolder(shared_api.root, job_id).logs
    for node in ("node0", "node1"):
        with RequestReport(logs, node), metered("s3://bucket/key", "get") as call:
            call.bytes = 7
            asked_again("s3://bucket/key", "get")
    (logs / "sys" / "storage" / "not-one-of-ours.csv").write_bytes(b"Node,Requests\nx,many\n\xff\n")

    items = api.get(f"/v1/jobs/{job_id}/storage").json()["items"]

    assert [item["node"] for item in items] == ["node0", "node1"]
    fixed = ("store", "operation", "requests", "bytes", "failures", "throttled", "retries")
    assert [items[0][name] for name in fixed] == ["s3://bucket", "get", 1, 7, 0, 0, 1]
    assert 0 < items[0]["p50_ms"] <= items[0]["p99_ms"]
