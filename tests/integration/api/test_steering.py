"""Who may pause, resume and prioritize jobs, and what the audit log says of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.integration.api.test_people import OPERATOR, People, accepted, served

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.integration


def test_who_may_pause_resume_and_raise_a_job(redis_url: str, site: Site, tmp_path: Path) -> None:
    check_pauses(redis_url, tmp_path, site)


def check_pauses(redis_url: str, tmp_path: Path, site: Site, without: str = "") -> None:
    """Pause, resume and prioritize a job as its owner, as others and as an admin."""
    with served(redis_url, tmp_path / "root", without=without) as server, ExitStack() as clients:
        people = People(server, clients)
        job = f"/v1/jobs/{people.things_of_anna(site)}"
        for refused in (people.bert, people.rita):
            assert refused.post(f"{job}:pause").status_code == 403
            assert refused.post(f"{job}:prioritize", json={"priority": "low"}).status_code == 403
        assert accepted(people.anna.post(f"{job}:pause"))["paused"]
        assert not accepted(people.anna.post(f"{job}:resume"))["paused"]
        assert accepted(people.anna.post(f"{job}:prioritize", json={"priority": "high"}))["priority"] == "high"
        urgent = people.anna.post(f"{job}:prioritize", json={"priority": "urgent"})
        assert (urgent.status_code, urgent.json()["code"]) == (403, "not_allowed")
        assert "only an admin" in urgent.json()["detail"]
        assert people.anna.post(f"{job}:prioritize", json={"priority": "top"}).status_code == 422

        assert accepted(people.operator.post(f"{job}:pause"))["paused"]
        resumed = people.anna.post(f"{job}:resume")
        assert resumed.status_code == 403, "an admin has paused it"
        assert "whoever runs this server has paused job" in resumed.json()["detail"]
        explained = accepted(people.anna.get(f"{job}/explanation"))
        assert explained["answer"] == "it was paused by whoever runs this server, as an admin"
        assert accepted(people.operator.post(f"{job}:prioritize", json={"priority": "urgent"}))["priority"] == "urgent"
        assert people.anna.post(f"{job}:prioritize", json={"priority": "low"}).status_code == 403
        assert not accepted(people.operator.post(f"{job}:resume"))["paused"]
        accepted(people.anna.post(f"{job}:cancel"))


def test_the_audit_log_says_who_has_changed_a_priority_and_from_which_to_which(
    redis_url: str, site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    flags = ("--token", OPERATOR, "--audit-log", str(log))
    with ApiServer(tmp_path / "root", redis_url, *flags, insecure=False) as server, ExitStack() as clients:
        people = People(server, clients)
        job = people.things_of_anna(site)
        accepted(people.anna.post(f"/v1/jobs/{job}:prioritize", json={"priority": "high"}))
        people.anna.post(f"/v1/jobs/{job}:prioritize", json={"priority": "urgent"})
        accepted(people.operator.post(f"/v1/jobs/{job}:prioritize", json={"priority": "urgent"}))
        accepted(people.anna.post(f"/v1/jobs/{job}:cancel"))
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("job_id") == job]
    changes = [
        (line["token_name"], line["priority_from"], line["priority_to"]) for line in lines if "priority_to" in line
    ]
    assert changes == [("anna", "normal", "high"), ("default", "high", "urgent")]
