"""Limits are defined, shown and deleted by requests and commands, and jobs may name only those that there are."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from parallelrun.cli import main
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client) -> None:
    for each in api.get("/v1/limits").json()["items"]:
        api.delete(f"/v1/limits/{each['name']}")


def test_limit_is_defined_shown_changed_and_deleted(api: httpx.Client) -> None:
    created = api.put("/v1/limits/openai", json={"requests_per_minute": 3000, "in_flight": 200})
    shown = {"name": "openai", "requests_per_minute": 3000, "tokens_per_minute": None, "in_flight": 200}
    assert (created.status_code, created.json()) == (201, shown)
    assert api.get("/v1/limits/openai").json() == shown
    changed = api.put("/v1/limits/openai", content="tokens_per_minute: 5", headers={"Content-Type": "application/yaml"})
    assert (changed.status_code, changed.json()["tokens_per_minute"]) == (200, 5)
    assert [each["name"] for each in api.get("/v1/limits").json()["items"]] == ["openai"]
    assert api.delete("/v1/limits/openai").status_code == 204
    assert api.get("/v1/limits/openai").status_code == 404


@pytest.mark.parametrize(
    "document, pointer",
    [
        ({}, ""),
        ({"requests_per_minute": 0}, "/requests_per_minute"),
        ({"in_flight": "many"}, "/in_flight"),
        ({"requests_per_second": 5}, "/requests_per_second"),
        ({"name": "other", "in_flight": 1}, "/name"),
        ([], ""),
    ],
)
def test_limit_that_is_wrong_is_refused_with_the_place(api: httpx.Client, document: object, pointer: str) -> None:
    answer = api.put("/v1/limits/openai", json=document)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_limit_commands_show_what_the_server_has(
    shared_api: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", f"http://127.0.0.1:{shared_api.port}")
    (tmp_path / "limit.yml").write_text("{name: openai, requests_per_minute: 3000}")
    assert main(["limit", "create", "-f", str(tmp_path / "limit.yml")]) == 0
    assert main(["limit", "list", "-o", "json"]) == 0
    assert main(["limit", "show", "openai"]) == 0
    text = capsys.readouterr().out
    assert "openai" in text
    assert "3,000" in text
    assert main(["limit", "delete", "openai"]) == 0
    assert main(["limit", "show", "openai"]) != 0


def test_limit_that_is_not_there_is_refused_when_a_job_names_it(api: httpx.Client, site: Site) -> None:
    api.put("/v1/limits/openai", json={"in_flight": 1})
    answer = api.post("/v1/jobs", json=site.spec(rate_limits=["openia"]))
    assert answer.status_code == 422, answer.text
    [problem] = answer.json()["errors"]
    assert problem["pointer"] == "/rate_limits/0"
    assert "openai" in json.dumps(problem)
