"""Computes are defined, shown and deleted by requests."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.integration

LOCAL = {"type": "local", "max_instances": 3}


@pytest.fixture(autouse=True)
def none_left(api: httpx.Client) -> None:
    for each in api.get("/v1/computes").json()["items"]:
        api.delete(f"/v1/computes/{each['name']}")


def test_one_is_defined_shown_changed_and_deleted(api: httpx.Client, root: Path) -> None:
    made = api.put("/v1/computes/here", json=LOCAL)
    assert made.status_code == 201, made.text
    shown = {
        "name": "here", "type": "local", "min_instances": 0, "max_instances": 3, "is_default": False,
        "definition": {**LOCAL, "name": "here"},
    }  # fmt: skip
    assert made.json() == api.get("/v1/computes/here").json() == shown
    azure = api.put(
        "/v1/computes/here", content="{type: amlcompute, size: STANDARD_D2, max_instances: 4, location: westus}",
        headers={"Content-Type": "application/yaml"},
    )  # fmt: skip
    assert (azure.status_code, azure.json()["max_instances"], azure.json()["type"]) == (200, 4, "local")
    assert [each["name"] for each in api.get("/v1/computes").json()["items"]] == ["here"]
    assert json.loads((root / "computes" / "here.json").read_text())["max_instances"] == 4
    assert api.delete("/v1/computes/here").status_code == 204
    assert api.delete("/v1/computes/here").status_code == 404


def test_only_one_can_be_the_default(api: httpx.Client) -> None:
    assert api.put("/v1/computes/one", json={**LOCAL, "is_default": True}).status_code == 201
    refused = api.put("/v1/computes/two", json={**LOCAL, "is_default": True})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/is_default"
    assert "'one' is the default already" in refused.text
    assert api.put("/v1/computes/one", json={**LOCAL, "is_default": True}).status_code == 200
