"""A job that was deleted is gone at once, by every route and in every process; only restoring brings it back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.integration.api.test_people import with_values

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

_STILL_THERE = {"post /v1/jobs/{job_id}:restore", "delete /v1/jobs/{job_id}"}
"""Requests that are also about what was deleted."""
_ROWS = "parallel_run_step.txt"


def completed(api: httpx.Client, root: Path, redis: Redis, site: Site) -> str:
    """A job with rows that has completed."""
    job_id = str(api.post("/v1/jobs", json=site.spec()).raise_for_status().json()["id"])
    master = Master(root, redis)
    master.begin(job_id)
    master.end(job_id, JobState.COMPLETED, rows=b"row\n")
    Registry(redis).retire(job_id, term=1)
    return job_id


def read_through(api: httpx.Client, job_id: str) -> None:
    """Ask for all that a server could keep of it."""
    assert api.get(f"/v1/jobs/{job_id}/outputs").json()["items"]
    assert api.get(f"/v1/jobs/{job_id}/outputs/{_ROWS}").text == "row\n"
    for name in ("", "/logs", "/mini-batches", "/settings", "/document", "/advice"):
        assert api.get(f"/v1/jobs/{job_id}{name}").status_code == 200, name


def still_answered(api: httpx.Client, job_id: str) -> list[str]:
    """Requests about a job that say anything else than that it is not there."""
    paths: dict[str, dict[str, Any]] = api.get("/v1/openapi.json").json()["paths"]
    answered, tried = [], 0
    for path, methods in paths.items():
        for method in sorted({"get", "post", "put", "delete"} & set(methods)) if "{job_id}" in path else ():
            if f"{method} {path}" not in _STILL_THERE:
                tried += 1
                target = with_values(path, job_id).replace("outputs/x", f"outputs/{_ROWS}")
                answer = api.request(method.upper(), target, json={} if method != "get" else None)
                answered += [f"{method} {path}: {answer.status_code}"] if answer.status_code != 404 else []
    assert tried > 30
    return answered


def check_deleted(root: Path, redis_url: str, redis: Redis, site: Site, *, without: str = "") -> None:
    """Delete a job by one server, and ask all about it, of this one and of another that has read it before."""
    with ExitStack() as stack:
        servers = [stack.enter_context(ApiServer(root, redis_url, without=without)) for _ in range(2)]
        here, elsewhere = (stack.enter_context(each.client()) for each in servers)
        job_id = completed(here, root, redis, site)
        for api in (here, elsewhere):
            read_through(api, job_id)
        here.delete(f"/v1/jobs/{job_id}").raise_for_status()
        for api in (here, elsewhere):
            assert still_answered(api, job_id) == []
            inputs = {"data": f"{root}/jobs/{job_id}/outputs"}
            refused = api.post("/v1/jobs", json=site.spec(inputs=inputs))
            assert (refused.status_code, "was deleted" in refused.text) == (422, True)
        elsewhere.post(f"/v1/jobs/{job_id}:restore").raise_for_status()
        read_through(here, job_id)


def test_a_deleted_job_is_gone_by_every_route_and_in_every_process(
    tmp_path: Path, redis_url: str, redis: Redis, site: Site
) -> None:
    check_deleted(tmp_path / "root", redis_url, redis, site)
