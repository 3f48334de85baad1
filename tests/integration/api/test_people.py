"""Several people on one server: whose things are whose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


def client_of(server: ApiServer, token: str) -> httpx.Client:
    return server.client(headers={"Authorization": f"Bearer {token}"})


def accepted(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code in (200, 201, 202), answer.text
    body: dict[str, Any] = answer.json()
    return body


class TestNamesInAFile:
    @pytest.fixture
    def server(self, redis_url: str, tmp_path: Path) -> Iterator[ApiServer]:
        tokens = tmp_path / "tokens"
        tokens.write_text("anna anna-has-this-one\nbert bert-has-this-one\n")
        tokens.chmod(0o600)
        with ApiServer(
            tmp_path / "root", redis_url, "--tokens-file", str(tokens), "--token", "of-the-operator", insecure=False
        ) as server:
            yield server

    def test_what_is_made_belongs_to_who_made_it(self, server: ApiServer, site: Site) -> None:
        schedule = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": site.spec()}
        with client_of(server, "anna-has-this-one") as anna, client_of(server, "bert-has-this-one") as bert:
            made = [
                accepted(anna.post("/v1/jobs", json=site.spec())),
                accepted(anna.put("/v1/schedules/nightly", json=schedule)),
                accepted(anna.put("/v1/batch-endpoints/iris", json={"name": "iris"})),
                accepted(
                    anna.post("/v1/assets/data/rows/versions", json={"type": "uri_folder", "path": str(site.data)})
                ),
            ]
            assert [each["owner"] for each in made] == ["anna"] * 4
            assert JobFolder(server.root, made[0]["id"]).record().owner == "anna"
            # Whoever changes it later, it stays hers, and so do the jobs that it makes.
            assert accepted(bert.put("/v1/schedules/nightly", json=schedule))["owner"] == "anna"
            assert accepted(bert.post("/v1/schedules/nightly:trigger"))["owner"] == "anna"
            assert accepted(bert.put("/v1/batch-endpoints/iris", json={"name": "iris"}))["owner"] == "anna"

    def test_a_list_of_one_persons_jobs(self, server: ApiServer, site: Site) -> None:
        with client_of(server, "anna-has-this-one") as anna, client_of(server, "of-the-operator") as operator:
            hers = accepted(anna.post("/v1/jobs", json=site.spec()))["id"]
            operators = accepted(operator.post("/v1/jobs", json=site.spec()))
            assert operators["owner"] == ""
            listed = {
                owner: {each["id"] for each in accepted(anna.get("/v1/jobs", params={"owner": owner}))["items"]}
                for owner in ("anna", "", "bert")
            }
            assert listed == {"anna": {hers}, "": {operators["id"]}, "bert": set()}
            assert len(accepted(anna.get("/v1/jobs"))["items"]) == 2


def test_without_names_nothing_has_an_owner(api: httpx.Client, job_id: str) -> None:
    assert accepted(api.get(f"/v1/jobs/{job_id}"))["owner"] == ""
