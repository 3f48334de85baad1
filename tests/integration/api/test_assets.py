"""Assets are made, shown, labelled and archived by requests, and jobs keep what their names stood for."""

from __future__ import annotations

import io
import json
import secrets
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_api.http.requests import MAX_BODY_BYTES
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


def zipped(**files: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return packed.getvalue()


def make(api: httpx.Client, path: str, document: dict[str, Any], **files: str) -> httpx.Response:
    method = "PUT" if path.count("/") > 4 and not path.endswith("versions") else "POST"
    if not files:
        return api.request(method, path, json=document)
    form = {"content": ("content.zip", zipped(**files), "application/zip")}
    return api.request(method, path, data={"spec": json.dumps(document)}, files=form)


def test_a_version_is_made_shown_and_never_changed(api: httpx.Client, site: Site, root: Path) -> None:
    path = "/v1/assets/data/pictures/versions/1"
    document = {"type": "uri_folder", "path": str(site.data), "description": "ours"}
    made = make(api, path, document)
    assert made.status_code == 201, made.text
    assert made.json()["content"] == {"type": "uri_folder", "path": str(site.data)}
    assert made.json()["id"] == "azureml:pictures:1"
    assert api.get(path).json() == made.json()
    assert make(api, path, document).status_code == 200
    changed = make(api, path, {**document, "type": "mltable"})
    assert (changed.status_code, changed.json()["code"]) == (409, "conflict")
    assert "a version never changes" in changed.json()["detail"]
    assert api.get(path).json() == made.json()
    second = make(api, "/v1/assets/data/pictures/versions", document).json()
    assert second["version"] == "2"
    versions = api.get("/v1/assets/data/pictures/versions", params={"limit": 1}).json()
    assert [each["version"] for each in versions["items"]] == ["2"]
    rest = api.get("/v1/assets/data/pictures/versions", params={"page_token": versions["next_page_token"]}).json()
    assert ([each["version"] for each in rest["items"]], rest["next_page_token"]) == (["1"], None)
    assert (root / "assets" / "data" / "pictures" / "versions" / "1.json").exists()


def test_labels_and_the_archive_decide_what_a_name_stands_for(api: httpx.Client, site: Site) -> None:
    base = "/v1/assets/data/labelled"
    for _ in range(2):
        assert make(api, f"{base}/versions", {"path": str(site.data)}).status_code == 201

    def version(name: str) -> str:
        return str(api.get("/v1/assets/data:resolve", params={"name": f"azureml:labelled{name}"}).json()["version"])

    assert api.put(f"{base}/labels/stable", json={"version": "1"}).status_code == 200
    assert (version("@stable"), version("@latest"), version("")) == ("1", "2", "2")
    assert api.get(f"{base}/labels").json() == {"labels": {"latest": "2", "stable": "1"}}
    assert api.put(f"{base}/labels/latest", json={"version": "1"}).status_code == 422
    assert api.put(f"{base}/labels/stable", json={"version": "7"}).status_code == 404
    assert api.post(f"{base}/versions/2:archive").json()["archived"] is True
    assert (version("@latest"), version(":2")) == ("1", "2")
    assert api.post(f"{base}:archive").status_code == 200
    assert "labelled" not in [each["name"] for each in api.get("/v1/assets/data").json()["items"]]
    shown = api.get("/v1/assets/data", params={"archived": "true"}).json()["items"]
    assert "labelled" in [each["name"] for each in shown]
    assert api.post(f"{base}:restore").status_code == 200
    assert api.post(f"{base}/versions/2:restore").json()["archived"] is False
    assert api.delete(f"{base}/labels/stable").status_code == 204
    assert api.get(f"{base}/labels/stable").status_code == 404


def test_files_that_are_sent_are_copied_and_named_by_their_content(api: httpx.Client, root: Path) -> None:
    weights = secrets.token_hex(MAX_BODY_BYTES)  # no smaller as a zip than the bodies of requests without files may be
    made = make(api, "/v1/assets/model/credit/versions/1", {"path": "model"}, model__a=weights)
    assert made.status_code == 201, made.text
    content = made.json()["content"]
    assert Path(content["path"]).parent == root / "asset_files" / content["files"]
    assert (Path(content["path"]) / "a").read_text() == weights
    assert make(api, "/v1/assets/model/credit/versions/1", {"path": "model"}, model__a=weights).status_code == 200
    assert make(api, "/v1/assets/model/credit/versions/1", {"path": "model"}, model__a="others").status_code == 409
    code = make(api, "/v1/assets/code/src/versions/1", {}, a_dot_py="def run(x): return x")
    assert code.status_code == 201, code.text
    assert code.json()["content"]["path"] == f"azureml:code/{code.json()['content']['snapshot']}"


@pytest.mark.parametrize(
    "path, document, status, pointer",
    [
        ("/v1/assets/data/x/versions", {}, 422, "/path"),
        ("/v1/assets/data/x/versions", {"path": "relative"}, 422, "/path"),
        ("/v1/assets/data/x/versions", {"path": "/nowhere/at/all"}, 422, "/path"),
        ("/v1/assets/data/x/versions", {"path": "/etc", "name": "y"}, 422, "/name"),
        ("/v1/assets/data/x/versions/2", {"path": "/etc", "version": 3}, 422, "/version"),
        ("/v1/assets/data/a%20b/versions", {"path": "/etc"}, 422, "/path/asset"),
        ("/v1/assets/data/x/versions/a%0Ab", {"path": "/etc"}, 422, "/path/version"),
        ("/v1/assets/datta/x/versions", {"path": "/etc"}, 422, "/path/kind"),
        ("/v1/assets/data/../versions", {"path": "/etc"}, 405, ""),
        ("/v1/assets/code/x/versions", {}, 422, ""),
        ("/v1/assets/environment/x/versions", {"image": 3}, 422, "/image"),
        ("/v1/assets/component/x/versions", {"type": "sweep"}, 422, "/type"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    api: httpx.Client, path: str, document: dict[str, Any], status: int, pointer: str
) -> None:
    answer = make(api, path, document)
    assert answer.status_code == status, answer.text
    assert [each["pointer"] for each in answer.json()["errors"] if each["pointer"]] == ([pointer] if pointer else [])


def test_a_name_that_nothing_has_says_what_there_is(api: httpx.Client, site: Site) -> None:
    make(api, "/v1/assets/data/known/versions/1", {"path": str(site.data)})
    unknown = api.get("/v1/assets/data/knwon/versions/1").json()
    assert unknown["code"] == "unknown_asset"
    assert unknown["errors"][0]["hint"].startswith("did you mean 'known'? There are known")
    assert api.get("/v1/assets/data/known/versions/7").json()["code"] == "unknown_version"
    assert api.get("/v1/assets/data:resolve", params={"name": "known"}).status_code == 422


def test_a_job_keeps_the_version_that_it_was_submitted_with(api: httpx.Client, site: Site) -> None:
    document = {"path": str(site.data)}
    assert make(api, "/v1/assets/data/frozen/versions/1", document).status_code == 201
    spec = site.spec(inputs={"data": "azureml:frozen@latest"})
    job = api.post("/v1/jobs", json=spec)
    assert job.status_code == 202, job.text
    assert make(api, "/v1/assets/data/frozen/versions/2", document).status_code == 201
    api.post("/v1/assets/data/frozen:archive")
    shown = api.get(f"/v1/jobs/{job.json()['id']}").json()["spec"]["inputs"]["data"]
    assert (shown["asset"], shown["path"]) == ("azureml:frozen:1", str(site.data))
    unknown = api.post("/v1/jobs", json=site.spec(inputs={"data": "azureml:frozn:1"}))
    assert unknown.status_code == 422
    assert [each["pointer"] for each in unknown.json()["errors"]] == ["/inputs/data/path"]


def test_only_what_jobs_may_use_can_have_a_name(redis_url: str, tmp_path: Path, site: Site) -> None:
    audit = tmp_path / "audit.log"
    flags = ("--allowed-roots", f"{site.data}", "--audit-log", str(audit))
    with ApiServer(tmp_path / "root", redis_url, *flags) as server, server.client() as api:
        assert make(api, "/v1/assets/data/a/versions", {"path": "/etc"}).json()["errors"][0]["pointer"] == "/path"
        assert make(api, "/v1/assets/data/a/versions", {"path": "s3://b/x"}).status_code == 422
        assert make(api, "/v1/assets/data/a/versions", {"path": str(site.data)}).status_code == 201
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["did"], line["status"], line["asset"]) for line in lines][-1] == ("create_asset", 201, "data/a")


def test_the_site_file_of_a_server_counts_for_all_that_it_reads(redis_url: str, tmp_path: Path, site: Site) -> None:
    file = tmp_path / "site.yml"
    file.write_text(f"data:\n  azureml:theirs: {site.data}\nlocations:\n  https://x.example/: {site.data}/\n")
    with ApiServer(tmp_path / "root", redis_url, "--site", str(file)) as server, server.client() as api:
        found = api.get("/v1/assets/data:resolve", params={"name": "azureml:theirs:4"}).json()
        assert found["content"] == {"path": str(site.data)}
        said = api.get("/v1/site").json()
        assert said["locations"] == {"https://x.example/": f"{site.data}/"}
        assert said["datastores"] == {"workspaceblobstore": str(tmp_path / "root" / "blobstore")}
        file.write_text(f"datastores:\n  workspaceblobstore: {site.data}\n")
        assert api.get("/v1/site").json()["datastores"] == {"workspaceblobstore": str(site.data)}
        made = make(api, "/v1/assets/data/a/versions", {"path": "azureml://datastores/workspaceblobstore/paths/"})
        assert Path(made.json()["content"]["path"]) == site.data
        file.write_text("dta: {}\n")
        assert "site.yml:1" in api.get("/v1/site").text or api.get("/v1/site").status_code == 422
