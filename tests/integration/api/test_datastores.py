"""Datastores are defined, shown and deleted by requests; no answer and no line of the audit log has a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master

pytestmark = pytest.mark.integration

S3 = {"type": "s3", "bucket": "our-images", "credentials": {"secret": "images"}}
CANARY = "canary+0123456789abcdef=="


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client) -> None:
    for each in api.get("/v1/datastores").json()["items"]:
        api.delete(f"/v1/datastores/{each['name']}")


def test_one_is_defined_shown_changed_and_deleted(api: httpx.Client, root: Path) -> None:
    made = api.put("/v1/datastores/images", json=S3)
    assert made.status_code == 201, made.text
    shown = {
        "name": "images", "type": "s3", "location": "s3://our-images", "access": "secret",
        "definition": {**S3, "name": "images"},
    }  # fmt: skip
    assert made.json() == api.get("/v1/datastores/images").json() == shown
    changed = api.put(
        "/v1/datastores/images", content="{type: s3, bucket: our-images, prefix: a, anonymous: true}",
        headers={"Content-Type": "application/yaml"},
    )  # fmt: skip
    assert (changed.status_code, changed.json()["location"]) == (200, "s3://our-images/a")
    assert [each["access"] for each in api.get("/v1/datastores").json()["items"]] == ["anonymous"]
    assert json.loads((root / "datastores" / "images.json").read_text())["prefix"] == "a"
    assert api.delete("/v1/datastores/images").status_code == 204
    assert api.delete("/v1/datastores/images").status_code == 404
    assert api.get("/v1/datastores/images").json()["code"] == "not_found"


@pytest.mark.parametrize(
    "name, document, status, pointer",
    [
        ("images", {"type": "s3"}, 422, "/bucket"),
        ("images", {**S3, "name": "other"}, 422, "/name"),
        ("images", {**S3, "secret_access_key": CANARY}, 422, "/secret_access_key"),
        ("images", {**S3, "credentials": {"account_key": CANARY}}, 422, "/credentials"),
        ("images", {**S3, "credentials": {"secret": CANARY}}, 422, "/credentials/secret"),
        ("..", S3, 404, ""),
        ("a.b", S3, 422, "/path/datastore"),
        ("a%2Fb", S3, 404, ""),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_no_secret(
    api: httpx.Client, root: Path, *, name: str, document: dict[str, Any], status: int, pointer: str
) -> None:
    answer = api.put(f"/v1/datastores/{name}", json=document)
    assert answer.status_code == status, answer.text
    assert [each["pointer"] for each in answer.json()["errors"]] == ([pointer] if pointer else [])
    assert CANARY not in answer.text
    assert not list(root.glob("datastores/*.json"))


def test_only_what_jobs_may_use_can_be_defined(redis_url: str, tmp_path: Path, site: Site) -> None:
    """Or a definition would lead requests of the nodes to any server that they reach."""
    audit = tmp_path / "audit.log"
    flags = ("--allowed-roots", f"{site.folder}:s3://ours:https://minio.example.com", "--audit-log", str(audit))
    with ApiServer(tmp_path / "root", redis_url, *flags) as server, server.client() as api:

        def put(**fields: str) -> tuple[int, str]:
            answer = api.put("/v1/datastores/d", json={"type": "s3", "bucket": "ours", **fields})
            return answer.status_code, answer.text

        assert put()[0] == 201
        assert put(prefix="a")[0] == 200
        assert put(endpoint="https://minio.example.com")[0] == 200
        for fields in ({"bucket": "other"}, {"endpoint": "http://169.254.169.254"}, {"endpoint": "http://localhost:1"}):
            status, text = put(**fields)
            assert status == 422
            is_of_a_cloud = fields.get("endpoint") == "http://169.254.169.254"
            assert ("only machines themselves" if is_of_a_cloud else "outside of the places that jobs may use") in text
        spec = site.spec(inputs={"x": "azureml://datastores/d/paths/x", "y": "azureml://datastores/e/paths/x"})
        refused = api.post("/v1/jobs", json={**spec, "input_data": ["x", "y"]}).json()
        assert [each["pointer"] for each in refused["errors"]] == ["/inputs/y/path"]
        assert "there are d; define one with `parallelrun datastore create" in refused["errors"][0]["hint"]
        api.delete("/v1/datastores/d")
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    did = [(line["did"], line["status"]) for line in lines if line.get("datastore") == "d"]
    assert did == [("put_datastore", 201), *[("put_datastore", 200)] * 2, *[("put_datastore", 422)] * 3,
                   ("delete_datastore", 204)]  # fmt: skip


def test_one_that_a_job_uses_stays_until_the_job_has_ended(api: httpx.Client, site: Site, master: Master) -> None:
    api.put("/v1/datastores/d", json={"type": "s3", "bucket": "ours"})
    api.put("/v1/datastores/other", json={"type": "s3", "bucket": "ours"})
    made = api.post("/v1/jobs", json=site.spec(inputs={"x": "azureml://datastores/d/paths/x"}))
    assert made.status_code == 202, made.text
    refused = api.delete("/v1/datastores/d")
    assert refused.status_code == 409
    assert made.json()["id"] in refused.json()["detail"]
    assert api.delete("/v1/datastores/other").status_code == 204
    assert api.get("/v1/datastores/d").status_code == 200
    master.conclude(made.json()["id"], JobState.CANCELED)
    assert api.delete("/v1/datastores/d").status_code == 409, "its leader still clears up in the store"
    master.retire(made.json()["id"])
    assert api.delete("/v1/datastores/d").status_code == 204


def test_one_that_an_unreadable_job_may_use_stays(api: httpx.Client, site: Site, master: Master) -> None:
    api.put("/v1/datastores/d", json={"type": "s3", "bucket": "ours"})
    made = api.post("/v1/jobs", json=site.spec()).json()["id"]
    other = api.post("/v1/jobs", json=site.spec()).json()["id"]
    record = JobFolder(master.root, made).layout.record
    sound = record.read_bytes()
    record.unlink()
    record.mkdir()  # reading it is an OSError, as with a disk that fails
    try:
        assert api.delete("/v1/datastores/d").status_code == 500
        assert api.get("/v1/datastores/d").status_code == 200
        listed = {each["id"] for each in api.get("/v1/jobs", params={"limit": "200"}).json()["items"]}
        assert (made in listed, other in listed) == (False, True)
    finally:
        record.rmdir()
        record.write_bytes(sound)
