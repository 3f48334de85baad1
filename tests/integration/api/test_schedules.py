"""Schedules are defined, shown, enabled, disabled, triggered and deleted by requests."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.intake.prepared import JOB_ID
from tests.integration.api.conftest import ENTRY_SCRIPT, Site, footprint

pytestmark = pytest.mark.integration

DAILY = {"type": "cron", "expression": "30 2 * * *", "time_zone": "W. Europe Standard Time"}


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client) -> Iterator[None]:
    yield
    for each in api.get("/v1/schedules").json()["items"]:
        api.delete(f"/v1/schedules/{each['name']}")


def document(site: Site, **changes: Any) -> dict[str, Any]:
    plain = {"trigger": DAILY, "create_job": site.spec()}
    return {name: value for name, value in {**plain, **changes}.items() if value is not None}


def test_one_is_defined_shown_changed_and_deleted(api: httpx.Client, site: Site) -> None:
    made = api.put("/v1/schedules/nightly", json=document(site, description="Each night"))
    assert made.status_code == 201, made.text
    shown = made.json()
    assert shown == api.get("/v1/schedules/nightly").json()
    assert (shown["trigger"], shown["due"]) == (DAILY, "30 2 * * * (W. Europe Standard Time)")
    assert (shown["enabled"], shown["missed_runs"], shown["allow_overlap"]) == (True, "once", False)
    assert (shown["name"], shown["description"], shown["revision"]) == ("nightly", "Each night", 1)
    assert len(shown["next"]) == 5
    assert shown["job"]["type"] == "parallel"
    assert shown["job"]["spec"]["entry_script"] == "main.py"
    assert shown.get("last") is None

    changed = api.put(
        "/v1/schedules/nightly",
        json=document(site, trigger={"type": "recurrence", "frequency": "week", "interval": 2}, missed_runs="skip"),
    )
    assert (changed.status_code, changed.json()["missed_runs"], changed.json()["revision"]) == (200, "skip", 2)
    assert changed.json()["created"] == shown["created"]
    assert [each["name"] for each in api.get("/v1/schedules").json()["items"]] == ["nightly"]
    assert api.delete("/v1/schedules/nightly").status_code == 204
    assert api.delete("/v1/schedules/nightly").status_code == 404
    assert api.get("/v1/schedules/nightly").json()["code"] == "not_found"


def test_pages_of_schedules(api: httpx.Client, site: Site) -> None:
    for name in "abc":
        assert api.put(f"/v1/schedules/{name}", json=document(site)).status_code == 201
    page = api.get("/v1/schedules", params={"limit": 2}).json()
    rest = api.get("/v1/schedules", params={"limit": 2, "page_token": page["next_page_token"]}).json()

    assert [each["name"] for each in page["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest.get("next_page_token") is None


def test_the_code_may_come_with_it_and_is_stored_before_anything_is_due(
    api: httpx.Client, site: Site, root: Path
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("main.py", ENTRY_SCRIPT + "# sent\n")
    sent = document(site, create_job={**site.spec(), "code": ""})
    made = api.put(
        "/v1/schedules/nightly", data={"spec": json.dumps(sent)}, files={"code": ("c.zip", packed.getvalue())}
    )
    assert made.status_code == 201, made.text
    (site.code / "main.py").unlink()
    answer = api.post("/v1/schedules/nightly:trigger")
    assert answer.status_code == 202, answer.text
    folder = JobFolder(root, answer.json()["id"])
    assert "# sent" in (folder.code(folder.record()) / "main.py").read_text()


def test_one_that_is_disabled_is_due_no_more_and_can_still_be_triggered(api: httpx.Client, site: Site) -> None:
    api.put("/v1/schedules/nightly", json=document(site))
    disabled = api.post("/v1/schedules/nightly:disable").json()
    assert (disabled["enabled"], disabled["next"]) == (False, [])
    assert api.put("/v1/schedules/nightly", json=document(site)).json()["enabled"] is False
    triggered = api.post("/v1/schedules/nightly:trigger", headers={"Idempotency-Key": "one"})
    again = api.post("/v1/schedules/nightly:trigger", headers={"Idempotency-Key": "one"})
    assert triggered.json()["id"] == again.json()["id"]
    assert triggered.json()["state"] == "queued"
    assert "made by the schedule 'nightly' because somebody asked for it" in triggered.json()["notes"]
    (fire,) = api.get("/v1/schedules/nightly/history").json()["items"]
    assert (fire["outcome"], fire["job_id"]) == ("manual", triggered.json()["id"])
    assert api.get("/v1/schedules/nightly").json()["last"] == fire
    enabled = api.post("/v1/schedules/nightly:enable").json()
    assert (enabled["enabled"], len(enabled["next"])) == (True, 5)
    assert api.post("/v1/schedules/other:enable").status_code == 404


def test_its_history_comes_in_pages(api: httpx.Client, site: Site) -> None:
    api.put("/v1/schedules/nightly", json=document(site))
    made = {api.post("/v1/schedules/nightly:trigger").json()["id"] for _ in range(3)}
    page = api.get("/v1/schedules/nightly/history", params={"limit": 2}).json()
    rest = api.get("/v1/schedules/nightly/history", params={"limit": 2, "page_token": page["next_page_token"]}).json()

    assert [len(page["items"]), len(rest["items"])] == [2, 1]
    assert {each["job_id"] for each in page["items"] + rest["items"]} == made
    assert api.get("/v1/schedules/other/history").status_code == 404


def test_a_job_that_there_is_is_made_again_with_other_inputs(
    api: httpx.Client, site: Site, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "two.txt").write_text("2\n")
    job = api.post("/v1/jobs", json=site.spec()).json()["id"]
    created = {
        "type": "pipeline",
        "job": f"azureml:{job}",
        "inputs": {"data": {"path": str(other)}},
        "tags": {"a": "b"},
        "compute": "azureml:other",
    }
    made = api.put("/v1/schedules/again", json=document(site, create_job=created))
    assert made.status_code == 201, made.text
    assert "/create_job/compute: it stays as that job has it" in made.json()["job"]["notes"]
    again = api.post("/v1/schedules/again:trigger").json()
    assert again["spec"]["inputs"]["data"]["path"] == str(other)
    assert again["spec"]["tags"] == {"a": "b"}
    assert JobFolder(root, again["id"]).record().code == JobFolder(root, job).record().code
    plain = api.put("/v1/schedules/plain", json=document(site, create_job=f"azureml:{job}"))
    assert plain.json()["job"]["spec"]["inputs"]["data"]["path"] == str(site.data)


def test_each_job_may_have_an_output_of_its_own(api: httpx.Client, site: Site, tmp_path: Path) -> None:
    created = site.spec(output=f"{tmp_path}/out/${{{{name}}}}")
    made = api.put("/v1/schedules/nightly", json=document(site, create_job=created))
    assert made.status_code == 201, made.text
    assert made.json()["job"]["spec"]["output"] == f"{tmp_path}/out/{JOB_ID}"
    job = api.post("/v1/schedules/nightly:trigger").json()
    assert job["spec"]["output"] == f"{tmp_path}/out/{job['id']}"


@pytest.mark.parametrize(
    "name, changes, status, pointer",
    [
        ("nightly", {"trigger": None}, 422, "/trigger"),
        ("nightly", {"trigger": {**DAILY, "expression": "x"}}, 422, "/trigger/expression"),
        ("nightly", {"trigger": {**DAILY, "time_zone": "Berlin"}}, 422, "/trigger/time_zone"),
        ("nightly", {"name": "other"}, 422, "/name"),
        ("nightly", {"when": "now"}, 422, "/when"),
        ("nightly", {"missed_runs": "twice"}, 422, "/missed_runs"),
        ("nightly", {"create_job": None}, 422, "/create_job"),
        ("nightly", {"create_job": 7}, 422, "/create_job"),
        ("nightly", {"create_job": "./job.yml"}, 422, "/create_job"),
        ("nightly", {"create_job": "azureml:job_00000000000000000000"}, 422, "/create_job"),
        ("nightly", {"create_job": "azureml:../../etc"}, 422, "/create_job"),
        ("nightly", {"create_job": {"entry_script": "main.py", "inputs": "/"}}, 422, "/create_job/code"),
        ("nightly", {"import_data": {}}, 422, "/import_data"),
        ("a%2Fb", {}, 404, ""),
        ("a.b", {}, 422, "/path/schedule"),
        ("-a", {}, 422, "/path/schedule"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_leaves_nothing(
    api: httpx.Client, site: Site, root: Path, *, name: str, changes: dict[str, Any], status: int, pointer: str
) -> None:
    given = document(site)
    given = {key: value for key, value in {**given, **changes}.items() if value is not None}
    before = footprint(root)
    answer = api.put(f"/v1/schedules/{name}", json=given)
    assert answer.status_code == status, answer.text
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert pointer in pointers if pointer else not pointers
    assert footprint(root) <= before | {"schedules"}
    assert api.get("/v1/schedules").json()["items"] == []


def test_paths_that_jobs_may_not_use_are_refused_when_it_is_defined(api: httpx.Client, site: Site, root: Path) -> None:
    given = document(site, create_job=site.spec(inputs={"data": str(root / "jobs")}))
    answer = api.put("/v1/schedules/nightly", json=given)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/create_job/inputs/data/path"


def test_a_file_that_each_job_would_write_is_refused(api: httpx.Client, site: Site, tmp_path: Path) -> None:
    given = document(site, create_job=site.spec(output=str(tmp_path / "out")))
    answer = api.put("/v1/schedules/nightly", json=given)
    assert answer.status_code == 422, answer.text
    (problem,) = answer.json()["errors"]
    assert problem["pointer"] == "/create_job/output"
    assert "${{name}}" in problem["hint"]


def test_what_cannot_be_changed_of_a_job_is_said(api: httpx.Client, site: Site) -> None:
    job = api.post("/v1/jobs", json=site.spec()).json()["id"]
    created = {"job": f"azureml:{job}", "inputs": {"datta": "/x"}, "code": "/x"}
    answer = api.put("/v1/schedules/again", json=document(site, create_job=created))
    assert answer.status_code == 422
    assert [(each["pointer"], each.get("hint")) for each in answer.json()["errors"]] == [
        ("/create_job/inputs/datta", "it has data"),
        ("/create_job/code", "inputs, outputs, display_name, description, tags and experiment_name can be"),
    ]
