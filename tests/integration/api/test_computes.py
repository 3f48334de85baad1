"""Computes are defined, shown and deleted by requests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.store.provisioning import NodeStatus, Provisioning, ProvisioningStatus
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import Master

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

LOCAL = {"type": "local", "max_instances": 3}


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client, root: Path) -> Iterator[None]:
    """The root folder is that of other tests, too: names have an effect while there is a compute."""
    yield
    shutil.rmtree(root / "computes", ignore_errors=True)


def test_one_is_defined_shown_changed_and_deleted(api: httpx.Client, root: Path) -> None:
    made = api.put("/v1/computes/here", json=LOCAL)
    assert made.status_code == 201, made.text
    shown = {
        "name": "here", "type": "local", "min_instances": 0, "max_instances": 3, "is_default": False,
        "cost_per_hour": 0.0,
        "definition": {**LOCAL, "name": "here"}, "status": None,
    }  # fmt: skip
    assert made.json() == api.get("/v1/computes/here").json() == shown
    azure = api.put(
        "/v1/computes/here", headers={"Content-Type": "application/yaml"},
        content="{type: amlcompute, kind: local, size: STANDARD_D2, max_instances: 4, location: westus}",
    )  # fmt: skip
    assert (azure.status_code, azure.json()["max_instances"], azure.json()["type"]) == (200, 4, "local")
    assert [each["name"] for each in api.get("/v1/computes").json()["items"]] == ["here"]
    assert json.loads((root / "computes" / "here.json").read_text())["max_instances"] == 4
    assert api.delete("/v1/computes/here").status_code == 204
    assert api.delete("/v1/computes/here").status_code == 404


def test_how_it_stands_is_what_the_provisioner_says(api: httpx.Client, redis: Redis) -> None:
    api.put("/v1/computes/here", json=LOCAL)
    said = ProvisioningStatus(
        at=100.0, wanted=3, ready=1, launching=2, failures=2, why="no \x1b[31mroom", next_attempt=160.0, plan="sbatch",
        nodes=[NodeStatus(node="here-0123456789ab", stage="pending", since=90.0, words="Resources")],
        plans={"team/a:1": "sbatch of a"},
    )  # fmt: skip
    Provisioning(redis).publish("here", said)
    shown = api.get("/v1/computes/here").json()["status"]
    assert (shown["wanted"], shown["ready"], shown["launching"], shown["plan"]) == (3, 1, 2, "sbatch")
    assert shown["plans"] == {"team/a:1": "sbatch of a"}
    assert shown["next_attempt"] == "1970-01-01T00:02:40.000Z"
    assert "\x1b" not in shown["why"]
    assert shown["nodes"][0]["words"] == "Resources"
    assert api.get("/v1/computes").json()["items"][0]["status"] == shown


def test_a_compute_is_of_a_kind_that_the_provisioner_starts(api: httpx.Client, redis: Redis) -> None:
    unknown = api.put("/v1/computes/aml", json={"type": "amlcompute"})
    assert unknown.status_code == 422
    assert unknown.json()["errors"][0]["pointer"] == "/kind"
    provisioning = Provisioning(redis)
    assert provisioning.lead()
    provisioning.serve(["docker", "swarm"])
    refused = api.put("/v1/computes/here", json=LOCAL)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/type"
    assert "one of docker, swarm, manual" in refused.text
    assert api.put("/v1/computes/mine", json={"type": "manual"}).status_code == 201
    assert api.put("/v1/computes/aml", json={"type": "amlcompute"}).json()["type"] == "docker"


def test_only_one_can_be_the_default(api: httpx.Client) -> None:
    assert api.put("/v1/computes/one", json={**LOCAL, "is_default": True}).status_code == 201
    refused = api.put("/v1/computes/two", json={**LOCAL, "is_default": True})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/is_default"
    assert "'one' is the default already" in refused.text
    assert api.put("/v1/computes/one", json={**LOCAL, "is_default": True}).status_code == 200


def test_a_job_runs_on_the_compute_that_it_names(
    api: httpx.Client, root: Path, site: Site, master: Master, redis: Redis
) -> None:
    def accepted(**changes: Any) -> Any:
        answer = api.post("/v1/jobs", json=site.spec(**changes))
        assert answer.status_code == 202, answer.text
        made = answer.json()["id"]
        return json.loads((root / "jobs" / made / "job.json").read_text())["spec"]["compute"]

    assert accepted(compute="azureml:any-cluster") == "", "no compute is defined, so names have no effect"
    api.put("/v1/computes/here", json=LOCAL)
    assert accepted(compute="azureml:here") == "here"
    assert accepted() == accepted(compute="serverless") == ""
    api.put("/v1/computes/here", json={**LOCAL, "is_default": True})
    assert accepted() == "here"
    refused = api.post("/v1/jobs", json=site.spec(compute="her"))
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {
            "pointer": "/compute", "message": "there is no compute 'her'",
            "hint": "did you mean 'here'? There are here; define one with `parallelrun compute create -f FILE` "
            "(docs/computes.md)",
        }
    ]  # fmt: skip
    kept = api.delete("/v1/computes/here")
    assert kept.status_code == 409
    assert "runs on compute 'here'" in kept.text
    active = Registry(redis).active_jobs()
    for each in active:
        master.conclude(each, JobState.CANCELED)
    assert api.delete("/v1/computes/here").status_code == 204, "Redis has not been told yet"
    assert Registry(redis).active_jobs() == active


def test_what_names_a_compute_keeps_it_or_is_refused(api: httpx.Client, redis: Redis, root: Path, site: Site) -> None:
    api.put("/v1/computes/here", json=LOCAL)
    job = api.post("/v1/jobs", json=site.spec(compute="here")).json()["id"]
    daily = {"type": "cron", "expression": "0 4 * * *"}
    schedule = {"trigger": daily, "create_job": site.spec(compute="here")}
    assert api.put("/v1/schedules/nightly", json=schedule).status_code == 201
    kept = api.delete("/v1/computes/here")
    assert kept.status_code == 409
    assert "schedule 'nightly' makes jobs on compute 'here'" in kept.text
    assert api.delete("/v1/schedules/nightly").status_code == 204
    ComputeCatalog(root).remove("here")
    refused = api.put("/v1/schedules/again", json={"trigger": daily, "create_job": f"azureml:{job}"})
    assert refused.status_code == 422
    assert "its compute 'here' was deleted" in refused.text
    redis.flushdb()  # as after the end of the job
    waits_for_ever = api.post(f"/v1/jobs/{job}:resume")
    assert waits_for_ever.status_code == 409
    assert "compute 'here', which was deleted" in waits_for_ever.text


def test_each_step_of_a_pipeline_has_its_compute(api: httpx.Client, root: Path, site: Site) -> None:
    for name in ("one", "two"):
        api.put(f"/v1/computes/{name}", json=LOCAL)
    step = {"type": "command", "command": "true", "code": str(site.code), "environment": "azureml:any@latest"}
    document: dict[str, Any] = {
        "type": "pipeline", "settings": {"default_compute": "azureml:one"},
        "jobs": {"first": step, "second": {**step, "compute": "azureml:two"}, "own": site.spec()},
    }  # fmt: skip
    answer = api.post("/v1/jobs", json=document)
    assert answer.status_code == 202, answer.text
    record = json.loads((root / "jobs" / answer.json()["id"] / "job.json").read_text())
    assert {name: each["job"]["compute"] for name, each in record["spec"]["steps"].items()} == {
        "first": "one", "second": "two", "own": "one",
    }  # fmt: skip
    assert not [note for note in record["notes"] if "names a compute" in note]
    document["jobs"]["second"]["compute"] = "azureml:three"
    refused = api.post("/v1/jobs", json=document)
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/jobs/second/compute"]
