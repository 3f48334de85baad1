"""Jobs are searched for among all of them, sorted by any column, and counted by state."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.integration.api.conftest import Site

pytestmark = pytest.mark.integration


def found(api: httpx.Client, **query: str) -> dict[str, Any]:
    answer = api.get("/v1/job-summaries", params=query)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def names(page: dict[str, Any]) -> list[str]:
    return [each["name"] for each in page["items"]]


class TestSearch:
    def test_jobs_are_found_by_what_is_theirs_and_sorted(self, api: httpx.Client, site: Site) -> None:
        marker = "of-this-test"
        for name, tags in (("sales", {"team": "red"}), ("prices", {"team": "blue"}), ("sales-again", {"team": "blue"})):
            answer = api.post("/v1/jobs", json=site.spec(name=name, tags={**tags, "case": marker}))
            assert answer.status_code == 202, answer.text
        canceled = found(api, q=f"{marker} prices")["items"][0]["id"]
        assert api.post(f"/v1/jobs/{canceled}:cancel").status_code == 202

        assert names(found(api, q=f"SALES {marker}")) == ["sales-again", "sales"]
        assert names(found(api, q=f"team=blue case={marker}")) == ["sales-again", "prices"]
        assert names(found(api, tag="team=red", q=marker)) == ["sales"]
        assert names(found(api, tag=f"case={marker}", order_by="name", ascending="true")) == [
            "prices", "sales", "sales-again",
        ]  # fmt: skip
        page = found(api, q=marker, status="canceled")
        assert (names(page), page["total"]) == (["prices"], 1)
        assert page["by_state"] == {"canceled": 1, "queued": 2}
        assert names(found(api, q=marker, until="2020-01-01T00:00:00Z")) == []
        assert len(names(found(api, q=marker, since="2020-01-01T00:00:00Z"))) == 3

        assert api.post(f"/v1/jobs/{canceled}:archive").status_code in (200, 202)
        assert names(found(api, q=f"{marker} prices")) == []
        assert names(found(api, q=f"{marker} prices", archived="true")) == ["prices"]
        assert api.post(f"/v1/jobs/{canceled}:restore").status_code in (200, 202)

        first = found(api, q=marker, limit="2")
        second = found(api, q=marker, limit="2", page_token=first["next_page_token"])
        assert names(first) + names(second) == ["sales-again", "prices", "sales"]
        assert second["next_page_token"] is None
        longer = api.get("/v1/jobs?limit=3").json()["items"]
        assert len(json.dumps(first["items"][0])) < len(json.dumps(longer[0])) / 2

    def test_tags_are_changed_also_of_a_job_that_has_ended(self, api: httpx.Client, site: Site) -> None:
        tags = {"team": "red", "case": "tagging"}
        job_id = api.post("/v1/jobs", json=site.spec(name="tagged", tags=tags)).json()["id"]
        assert names(found(api, tag="team=red", q="case=tagging")) == ["tagged"]
        assert api.post(f"/v1/jobs/{job_id}:cancel").status_code == 202
        before = api.get(f"/v1/jobs/{job_id}").headers["ETag"]

        change = {"set": {"team": "blue", "draft": ""}, "remove": ["case", "of no job"]}
        answer = api.post(f"/v1/jobs/{job_id}:tag", json=change)
        assert answer.status_code == 200, answer.text
        changed = {"team": "blue", "draft": ""}
        assert (answer.json()["tags"], answer.json()["spec"]["tags"]) == (changed, tags)
        assert api.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": before}).json()["tags"] == changed
        listed = api.get("/v1/jobs?limit=100").json()["items"]
        assert [each["tags"] for each in listed if each["id"] == job_id] == [changed]
        assert names(found(api, tag="team=red", q="tagged")) == []
        (summary,) = found(api, q="team=blue draft tagged")["items"]
        assert summary["tags"] == changed

    def test_a_change_of_tags_that_makes_no_sense_is_refused(self, api: httpx.Client, site: Site) -> None:
        job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
        for change, why in (
            ({"set": {"a=b": "c"}}, "set"),
            ({"set": {"a": "b"}, "remove": ["a"]}, "in `set` and in `remove`"),
            ({"set": {"": "b"}}, "set"),
            ({"remove": ["a\0"]}, "remove"),
        ):
            answer = api.post(f"/v1/jobs/{job_id}:tag", json=change)
            assert answer.status_code == 422, answer.text
            assert why in answer.text
        for first in (0, 60):
            change = {"set": {f"tag{number}": "" for number in range(first, first + 60)}}
            answer = api.post(f"/v1/jobs/{job_id}:tag", json=change)
        assert answer.status_code == 422
        assert "more than 100: remove some" in answer.text

    def test_jobs_are_found_by_an_asset_that_they_use(self, api: httpx.Client, site: Site) -> None:
        data = site.spec()["inputs"]["data"]
        for name in ("used", "used-too"):
            body = {"type": "uri_folder", "path": data}
            assert api.put(f"/v1/assets/data/{name}/versions/1", json=body).status_code in (200, 201)
        answer = api.post("/v1/jobs", json=site.spec(name="reader", inputs={"data": {"path": "azureml:used:1"}}))
        assert answer.status_code == 202, answer.text
        assert names(found(api, asset="azureml:used:1")) == ["reader"]
        assert names(found(api, asset="azureml:used-too:1")) == []

    def test_jobs_of_a_schedule_say_so(self, api: httpx.Client, site: Site) -> None:
        schedule = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": site.spec(name="by itself")}
        assert api.put("/v1/schedules/searched", json=schedule).status_code in (200, 201)
        made = api.post("/v1/schedules/searched:trigger").json()["id"]
        page = found(api, maker="schedule:searched")
        assert [each["id"] for each in page["items"]] == [made]
        assert page["items"][0]["maker"] == {"kind": "schedule", "name": "searched"}
        assert made not in [each["id"] for each in found(api, maker="endpoint")["items"]]
        assert api.delete("/v1/schedules/searched").status_code == 204
