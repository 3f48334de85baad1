"""What the scripts of a job have remembered: listed and deleted by whom the job belongs to."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import Logs, retention_of
from parallelrun_core.retention.measuring import Measured
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState
from parallelrun_worker.script_api.memory import Memory
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.integration.api.test_people import OPERATOR, People, accepted

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def memory_of(root: Path, job_id: str) -> Path:
    return Logs(JobFolder(root, job_id).logs).user_memory


def remember(root: Path, job_id: str, process: str, **answers: Any) -> Path:
    path = memory_of(root, job_id) / "node1" / f"{process}.jsonl"
    memory = Memory(str(path), [str(memory_of(root, job_id))])
    for key, value in answers.items():
        memory.remember(key, value)
    return path


def end(master: Master, job_id: str) -> None:
    master.begin(job_id)
    master.end(job_id, JobState.FAILED)
    Registry(master.redis).retire(job_id, term=1)


def listed(api: httpx.Client, job_id: str, query: str = "limit=2") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    token: str | None = ""
    while token is not None:
        page = api.get(f"/v1/jobs/{job_id}/remembered?{query}&page_token={token}").json()
        items, token = items + page["items"], page["next_page_token"]
    return items


def test_remembered_answers_are_listed_page_by_page(api: httpx.Client, job_id: str, master: Master) -> None:
    path = f"/v1/jobs/{job_id}/remembered"
    assert api.get(path).json() == {"items": [], "bytes": 0, "next_page_token": None}
    remember(master.root, job_id, "process000", one=1, two={"text": "ä" * 500}, three=None)
    second = remember(master.root, job_id, "process001", four="x")
    with second.open("ab") as file:
        file.write(b'nonsense\n{"key": 5, "value": 1}\n\xff\xfe\n{"key":"torn","val')

    items = listed(api, job_id)
    assert [each["key"] for each in items] == ["one", "two", "three", "four"]
    assert items[0] == {
        "key": "one", "bytes": 24, "value_begin": "1", "log": "user/remembered/node1/process000.jsonl",
    }  # fmt: skip
    assert len(items[1]["value_begin"]) == 200
    assert api.get(path).json()["bytes"] == sum(each.stat().st_size for each in second.parent.iterdir())
    assert [each["key"] for each in listed(api, job_id, "text=t")] == ["two", "three"]
    assert api.get(f"{path}?page_token=e30").status_code == 422
    assert api.get(f"/v1/jobs/{job_id}/logs/{items[0]['log']}").status_code == 200


def test_remembered_links_lead_nowhere(api: httpx.Client, job_id: str, master: Master, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"key":"secret","value":1}\n')
    path = remember(master.root, job_id, "process000", one=1)
    (path.parent / "link.jsonl").symlink_to(secret)
    (path.parent.parent / "node2").symlink_to(secret.parent)
    assert [each["key"] for each in listed(api, job_id)] == ["one"]
    end(master, job_id)
    assert api.delete(f"/v1/jobs/{job_id}/remembered").json()["count"] == 1
    assert secret.exists()


def test_remembered_answers_are_deleted_by_key_or_all(api: httpx.Client, job_id: str, master: Master) -> None:
    path = f"/v1/jobs/{job_id}/remembered"
    first = remember(master.root, job_id, "process000", one=1, two=2)
    remember(master.root, job_id, "process001", two=2, three=3)
    refused = api.delete(path, params={"key": "one"})
    assert (refused.status_code, "cancel it first" in refused.text) == (409, True)

    end(master, job_id)
    measured = Measured(master.root, retention_of(master.root))
    bytes_before = {each.job_id: each.bytes for each in measured.facts()}[job_id]
    assert api.delete(path, params={"key": "none"}).json() == {"count": 0, "bytes": 0}
    answer = api.delete(path, params={"key": "two"}).json()
    assert answer == {"count": 2, "bytes": 48}
    assert [each["key"] for each in listed(api, job_id)] == ["one", "three"]
    assert Memory(str(first.parent / "process002.jsonl"), [str(first.parent.parent)]).recall("two") is None
    assert Memory(str(first.parent / "process002.jsonl"), [str(first.parent.parent)]).recall("one") == 1
    assert {each.job_id: each.bytes for each in measured.facts()}[job_id] == bytes_before - 48, "as usage counts them"

    assert api.delete(path).json()["count"] == 2
    assert listed(api, job_id) == []
    assert list(first.parent.iterdir()) == []


def test_remembered_answers_are_deleted_by_their_owner_and_the_audit_log_says_so(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    flags = ("--token", OPERATOR, "--audit-log", str(log))
    with ApiServer(tmp_path / "root", redis_url, *flags, insecure=False) as server, ExitStack() as clients:
        people = People(server, clients)
        job = people.things_of_anna(site)
        remember(tmp_path / "root", job, "process000", one=1, two=2)
        end(Master(tmp_path / "root", redis), job)
        path = f"/v1/jobs/{job}/remembered"
        assert people.bert.delete(path).status_code == 403
        assert accepted(people.anna.delete(path, params={"key": "one"}))["count"] == 1
        assert accepted(people.operator.delete(path))["count"] == 1
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("job_id") == job]
    deleted = [(each["token_name"], each["answers"]) for each in lines if each["did"] == "forget_remembered"]
    assert deleted == [("anna", 1), ("default", 1)]
