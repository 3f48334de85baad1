"""What Azure's client has sent for a definition is shown as long as it is that definition, and no longer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_api.azure.outputs import keys_by_name
from parallelrun_core.layout import job_ids
from parallelrun_core.schedules.records import Revision
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import Master
from tests.security.azure_target import ML, TOKEN, WORKSPACE, AzureTarget, azure_target

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

ENDPOINT = f"{WORKSPACE}/batchEndpoints/iris"
DEPLOYMENT = f"{ENDPOINT}/deployments/blue"
SCHEDULE = f"{WORKSPACE}/schedules/nightly"
STEP = {"type": "command", "command": "true", "environment": "azureml:e@latest"}


@pytest.fixture
def target(redis_url: str, tmp_path: Path) -> Iterator[AzureTarget]:
    with azure_target(tmp_path / "root", redis_url) as made:
        yield made


@pytest.fixture
def native(target: AzureTarget) -> Iterator[httpx.Client]:
    """The API as our own command line asks it."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{target.server.port}", headers=headers) as client:
        yield client


@pytest.fixture
def model(site: Site) -> Path:
    folder = site.code.parent / "model"
    folder.mkdir(exist_ok=True)
    (folder / "weights").write_text("1")
    return folder


def sent(site: Site, model: Path, description: str) -> dict[str, Any]:
    return {
        "properties": {
            "description": description,
            "model": {"assetId": str(model)},
            "codeConfiguration": {"codeId": str(site.code), "scoringScript": "main.py"},
            "miniBatchSize": 5,
        }
    }


def written(site: Site, model: Path) -> dict[str, Any]:
    return {
        "type": "model",
        "model": {"path": str(model)},
        "code_configuration": {"code": str(site.code), "scoring_script": "main.py"},
    }


def shown(target: AzureTarget, path: str) -> dict[str, Any]:
    status, value = target.call("GET", path)
    assert status == 200, value
    properties: dict[str, Any] = value["properties"]
    return properties


def done(answer: httpx.Response) -> None:
    assert answer.is_success, answer.text


def test_a_deployment_made_in_another_way_is_not_shown_as_the_clients(
    target: AzureTarget, native: httpx.Client, site: Site, model: Path
) -> None:
    assert target.call("PUT", ENDPOINT, {"properties": {}})[0] in {200, 201}
    own = "/v1/batch-endpoints/iris/deployments/blue"

    def send() -> None:
        status, value = target.call("PUT", DEPLOYMENT, sent(site, model, "by the client"))
        assert status in {200, 201}, value
        assert shown(target, DEPLOYMENT)["miniBatchSize"] == 5

    send()
    done(native.put(own, json=written(site, model)))
    assert "miniBatchSize" not in shown(target, DEPLOYMENT), "it was changed in another way"
    send()
    assert target.call("DELETE", DEPLOYMENT)[0] == 200
    done(native.put(own, json=written(site, model)))
    assert "miniBatchSize" not in shown(target, DEPLOYMENT), "it was deleted by the client"
    send()
    assert target.call("DELETE", ENDPOINT)[0] == 200
    assert not list((target.root / "azure" / "deployments").iterdir()), "nothing is remembered of what is deleted"


def test_an_invocation_that_is_sent_again_is_one_job_and_tells_what_has_no_effect(
    target: AzureTarget, native: httpx.Client, site: Site, model: Path
) -> None:
    assert target.call("PUT", ENDPOINT, {"properties": {}})[0] in {200, 201}
    assert target.call("PUT", DEPLOYMENT, sent(site, model, "blue"))[0] in {200, 201}
    data = {"UriFolder": {"jobInputType": "UriFolder", "uri": str(site.data)}}
    compute = {"instanceCount": 2, "instanceType": "Standard_NC6", "target": "gpus"}
    body = json.dumps({"properties": {"inputData": data, "compute": compute}}).encode()
    headers = {
        "Authorization": f"Bearer {target.token()}", "Content-Type": "application/json",
        "azureml-model-deployment": "blue",
    }  # fmt: skip

    def invoke(request: str) -> str:
        status, text = target.ask("POST", f"{ENDPOINT}/jobs", body, {**headers, "repeatability_request-id": request})
        assert status == 201, text
        return str(json.loads(text)["name"])

    first = invoke("5f0c")
    assert invoke("5f0c") == first, "the answer was lost, and the client asks again"
    assert invoke("77aa") != first
    job = native.get(f"/v1/jobs/{first}").json()
    assert job["spec"]["instance_count"] == 2
    noted = {note.partition(":")[0] for note in job["notes"] if "of its deployment" in note}
    assert noted == {"/compute/instance_type", "/compute/target"}


def test_defaults_of_an_endpoint_that_are_no_mapping_are_refused(target: AzureTarget) -> None:
    status, value = target.call("PUT", ENDPOINT, {"properties": {"defaults": ["x"]}})
    assert status in {400, 422}, value
    assert "/properties/defaults" in str(value)


def test_a_schedule_that_was_changed_in_another_way_is_defined_anew_by_the_client(
    target: AzureTarget, native: httpx.Client
) -> None:
    action = {"actionType": "CreateJob", "jobDefinition": {"jobType": "Pipeline", "jobs": {"a": STEP}}}
    by_client = {"properties": {"trigger": {"triggerType": "Cron", "expression": "0 1 * * *"}, "action": action}}
    status, value = target.call("PUT", SCHEDULE, by_client)
    assert status in {200, 201}, value
    assert shown(target, SCHEDULE)["trigger"]["expression"] == "0 1 * * *"
    other = {
        "trigger": {"type": "cron", "expression": "0 2 * * *"},
        "create_job": {"type": "pipeline", "jobs": {"a": STEP}},
    }
    done(native.put("/v1/schedules/nightly", json=other))
    assert shown(target, SCHEDULE)["trigger"]["expression"] == "0 2 * * *"
    disabled = {"properties": {**by_client["properties"], "isEnabled": False}}
    assert target.call("PUT", SCHEDULE, disabled)[0] in {200, 201}
    answer = shown(target, SCHEDULE)
    assert (answer["trigger"]["expression"], answer["isEnabled"]) == ("0 1 * * *", False)
    assert answer["action"]["jobDefinition"]["jobs"] == {"a": STEP}, "as the client has sent it, also while disabled"


def test_a_schedule_takes_each_change_of_its_job_and_no_mask_for_one(target: AzureTarget) -> None:
    job = {
        "jobType": "Command", "command": "true", "environmentId": "azureml:e:1",
        "environmentVariables": {"KEY": "first"},
    }  # fmt: skip

    def put(properties: dict[str, Any]) -> Revision:
        status, value = target.call("PUT", SCHEDULE, {"properties": properties})
        assert status in {200, 201}, value
        return ScheduleStore(target.root).get("nightly")

    def with_job(**changes: Any) -> dict[str, Any]:
        action = {"actionType": "CreateJob", "jobDefinition": {**job, **changes}}
        return {"trigger": {"triggerType": "Cron", "expression": "0 1 * * *"}, "action": action}

    put(with_job())
    masked = shown(target, SCHEDULE)
    assert masked["action"]["jobDefinition"]["environmentVariables"] == {"KEY": "***"}
    disabled = put({**masked, "isEnabled": False})
    assert (disabled.is_enabled, disabled.job.spec["environment_variables"]) == (False, {"KEY": "first"})
    assert put(with_job(limits={"timeout": "PT1H"})).job.spec["run_invocation_timeout"] == 3600
    assert put(with_job(environmentVariables={"KEY": "second"})).job.spec["environment_variables"] == {"KEY": "second"}


def test_a_command_job_has_what_its_component_has(target: AzureTarget, native: httpx.Client) -> None:
    version = f"{WORKSPACE}/components/c/versions/1"
    component = {"name": "c", "type": "command", "command": "echo of a component", "environment": "azureml:e:1"}
    sent: dict[str, Any] = {"properties": {"jobType": "Command", "componentId": version.removeprefix("/azure")}}
    status, value = target.call("PUT", f"{WORKSPACE}/jobs/first", sent)
    assert status == 400, value
    assert "/component: 'c': there is no component of this name" in value["error"]["message"]
    assert target.call("PUT", version, {"properties": {"componentSpec": component}})[0] == 201
    sent["properties"] |= {"resources": {"shmSize": "2g"}, "notificationSetting": {"emails": ["a@example.com"]}}
    status, value = target.call("PUT", f"{WORKSPACE}/jobs/second", sent)
    assert status == 201, value
    job = native.get(f"/v1/jobs/{value['properties']['properties']['parallelrun.job_id']}").json()
    assert job["spec"]["command"] == "echo of a component"
    noted = {note.partition(":")[0] for note in job["notes"]}
    assert noted >= {"/resources/shm_size", "/notificationSetting"}, "what has no effect is told"


def test_the_name_of_a_deleted_job_stays_taken_and_that_is_said(target: AzureTarget, redis: Redis) -> None:
    job = {"properties": {"jobType": "Command", "command": "true", "environmentId": "azureml:e:1"}}
    status, value = target.call("PUT", f"{WORKSPACE}/jobs/once", job)
    assert status == 201, value
    job_id = value["properties"]["properties"]["parallelrun.job_id"]
    master = Master(target.root, redis)
    master.begin(job_id)
    master.end(job_id, JobState.COMPLETED)
    Registry(redis).retire(job_id, term=1)
    assert target.call("DELETE", f"{WORKSPACE}/jobs/once")[0] == 200
    status, value = target.call("PUT", f"{WORKSPACE}/jobs/once", job)
    assert (status, value["error"]["code"]) == (409, "Conflict")
    assert "was deleted" in value["error"]["message"]
    assert "'once' stays taken: choose another one" in value["error"]["message"]


def test_of_several_who_take_one_name_at_once_one_gets_it_and_no_other_job_is_made(target: AzureTarget) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    tokens = []
    with httpx.Client(base_url=f"http://127.0.0.1:{target.server.port}", headers=headers) as client:
        for person in ("anna", "ben", "cleo"):
            made = client.put(f"/v1/tokens/{person}", json={"scopes": ["submit"]})
            done(made)
            shown_header = {"X-IDENTITY-HEADER": made.json()["token"]}
            status, body = target.ask("GET", f"/azure/identity?resource={ML}", headers=shown_header)
            assert status == 200, body
            tokens.append(str(json.loads(body)["access_token"]))
        done(client.put("/v1/quotas/cleo", json={"jobs": 0}))
    job = {"properties": {"jobType": "Command", "command": "true", "environmentId": "azureml:e:1"}}
    status, refused = target.call("PUT", f"{WORKSPACE}/jobs/one_more", job, token=tokens.pop())
    assert (status, refused["error"]["code"]) == (400, "QuotaExceeded"), "no status with which the client tries again"

    def submit(each: tuple[int, str]) -> int:
        return target.call("PUT", f"{WORKSPACE}/jobs/wanted{each[0]}", job, token=each[1])[0]

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(submit, [(number, token) for number in range(6) for token in tokens]))
    assert statuses.count(201) == 6, statuses
    assert len(job_ids(target.root)) == 6


def test_outputs_of_one_step_are_called_as_its_pipelines_also_in_earlier_jobs() -> None:
    step = {"outputs": {"scores": {"value": "${{parent.outputs.result}}"}, "more": {"jobOutputType": "uri_folder"}}}
    sent = {"jobs": {"score": step}}
    for key in ("result", "scores"):
        outputs: dict[str, Any] = {key: {}, "more": {}}
        assert keys_by_name(sent, outputs, is_step=False) == {"result": key}
        assert keys_by_name(sent, outputs, is_step=True) == {"scores": key, "more": "more"}
