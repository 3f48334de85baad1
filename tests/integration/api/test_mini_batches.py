"""Mini-batches, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.store.agent_queue import AgentQueue
from parallelrun_core.store.job_views import JobViews
from parallelrun_core.store.leader_queue import LeaderQueue
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.seals import Seal
from parallelrun_core.wire import message
from parallelrun_core.wire.leasing import TurnReports
from parallelrun_core.wire.outcome import LostItems, Use, encode
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.reports.failed_items import HEADER
from tests.integration.api.server import RUN_FAILED, Master, outcome

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def all_pages(
    api: httpx.Client, job_id: str, query: str, *, of: str = "mini-batches"
) -> tuple[list[dict[str, Any]], int]:
    """All items, and on how many pages they came."""
    items: list[dict[str, Any]] = []
    token, pages = "", 0
    while True:
        page = api.get(f"/v1/jobs/{job_id}/{of}?{query}&page_token={token}").json()
        items += page["items"]
        pages += 1
        token = page["next_page_token"]
        if token is None:
            return items, pages


def test_what_is_told_of_one(api: httpx.Client, job_id: str, master: Master) -> None:
    failed = outcome(7, status="failed", tries=3, rows=0, failure=RUN_FAILED)
    master.decide(job_id, 1, [[outcome(3, rows=8, use=Use(50_000_000, 0, 9, 8, 7))], [failed]])

    done, other = api.get(f"/v1/jobs/{job_id}/mini-batches").json()["items"]

    assert done == {
        "id": 3,
        "status": "done",
        "tries": 1,
        "node": "node0",
        "process": "process000",
        "first_input": "",
        "items": 10,
        "rows": 8,
        "failed_items": 2,
        "started": "2025-11-21T04:40:00.125Z",
        "elapsed_s": 0.5,
        "run_s": 0.4,
        "process_s": 0.45,
        "peak_memory_bytes": 50_000_000,
        "read_bytes": 0,
        "minor_page_faults": 9,
        "major_page_faults": 8,
        "voluntary_context_switches": 7,
        "involuntary_context_switches": None,
        "failure": None,
    }
    assert (other["status"], other["tries"], other["failed_items"]) == ("failed", 3, 10)
    assert (other["peak_memory_bytes"], other["read_bytes"]) == (None, None)
    assert other["failure"] == {
        "category": "RUN_EXCEPTION",
        "message": "ValueError: bad row",
        "traceback": "Traceback …",
    }


def test_pages_over_several_terms_and_records(api: httpx.Client, job_id: str, master: Master) -> None:
    master.decide(job_id, 1, [[outcome(n) for n in range(0, 5)], [outcome(5)], [outcome(n) for n in range(6, 20)]])
    master.decide(job_id, 2, [[outcome(n, status="failed") for n in range(20, 23)]])
    master.decide(job_id, 4, [[outcome(n)] for n in range(23, 30)])

    for limit in (1, 4, 29, 30, 31):
        found, pages = all_pages(api, job_id, f"limit={limit}")
        assert [item["id"] for item in found] == list(range(30))
        assert pages == max(1, -(-30 // limit))
    assert [item["id"] for item in all_pages(api, job_id, "limit=2&status=failed")[0]] == [20, 21, 22]
    assert len(all_pages(api, job_id, "limit=10&status=done")[0]) == 27


def test_a_page_token_outlives_a_change_of_leader(api: httpx.Client, job_id: str, master: Master) -> None:
    master.decide(job_id, 1, [[outcome(n)] for n in range(4)])
    token = api.get(f"/v1/jobs/{job_id}/mini-batches?limit=3").json()["next_page_token"]
    master.decide(job_id, 2, [[outcome(n)] for n in range(4, 6)])

    found = api.get(f"/v1/jobs/{job_id}/mini-batches?page_token={token}").json()

    assert [item["id"] for item in found["items"]] == [3, 4, 5]


def test_those_that_run_and_those_that_wait(api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
    leader = LeaderQueue(redis, job_id)
    leader.acquire("t", ttl_ms=60_000, folder_term=0)
    Registry(redis).move(job_id, JobState.PROCESSING)
    leader.publish(0, [message.encode_files([(b"/d", [b"%d" % n])], 1) for n in range(12)])
    agent = AgentQueue(redis, job_id, session="node-7-abcd1234", node="node-7", lease_ms=60_000, seal=Seal("", b""))
    *_, failed_one = agent.turn("join", TurnReports(), 5).deliveries
    record = encode(outcome(4, status="retry", token=failed_one.token))
    agent.turn("stay", TurnReports(retries=[(4, failed_one.token, record, 1, 60_000, False)]), 0)

    running, _ = all_pages(api, job_id, "status=running&limit=2")
    ready, pages = all_pages(api, job_id, "status=ready&limit=3")

    assert [(item["id"], item["node"]) for item in running] == [(n, "node-7") for n in range(4)]
    assert [item["id"] for item in ready] == [*range(5, 12), 4]
    assert pages == 3
    paused = JobViews(redis).holding(job_id, 4)
    assert (paused.before, paused.node, paused.tries, 0 < paused.pause_s <= 60) == (None, "", 1, True)
    census = JobViews(redis).census([job_id])
    assert (census.ready, census.leased) == (8, 4)


def test_none_yet(api: httpx.Client, job_id: str) -> None:
    for status in ("", "done", "failed", "running", "ready"):
        query = f"?status={status}" if status else ""
        answer = api.get(f"/v1/jobs/{job_id}/mini-batches{query}").json()
        assert (answer["items"], answer["next_page_token"]) == ([], None)


@pytest.mark.parametrize("query", ["status=odd", "page_token=x", "page_token=ZGVjaWRlZC4x", "limit=x"])
def test_nonsense(query: str, api: httpx.Client, job_id: str) -> None:
    assert api.get(f"/v1/jobs/{job_id}/mini-batches?{query}").status_code == 422


def test_a_token_of_another_list(api: httpx.Client, job_id: str, master: Master) -> None:
    master.decide(job_id, 1, [[outcome(n)] for n in range(4)])
    token = api.get(f"/v1/jobs/{job_id}/mini-batches?limit=1").json()["next_page_token"]

    assert api.get(f"/v1/jobs?page_token={token}").status_code == 422
    assert api.get(f"/v1/jobs/{job_id}/mini-batches?status=ready&page_token={token}").status_code == 422


@pytest.mark.parametrize("offset", [1, 13, 10**9, 10**17])
def test_a_forged_position(offset: int, api: httpx.Client, job_id: str, master: Master) -> None:
    from parallelrun_api.http.paging import encode_token

    master.decide(job_id, 1, [[outcome(n)] for n in range(4)])

    answer = api.get(f"/v1/jobs/{job_id}/mini-batches?page_token={encode_token('decided', 1, offset, 0)}")

    assert answer.status_code == 200


def test_a_damaged_log_ends_where_the_damage_is(api: httpx.Client, job_id: str, master: Master, root: Any) -> None:
    master.decide(job_id, 1, [[outcome(n)] for n in range(4)])
    path = JobFolder(root, job_id).path / "decisions.1"
    path.write_bytes(path.read_bytes()[:-3])

    found, _ = all_pages(api, job_id, "limit=10")

    assert [item["id"] for item in found] == [0, 1, 2]


def written(root: Path, job_id: str, *lines: str) -> None:
    logs = JobFolder(root, job_id).logs
    logs.mkdir(parents=True, exist_ok=True)
    logs.joinpath("failed_items.csv").write_text("\n".join((HEADER, *lines)) + "\n")


def test_failed_items_come_page_by_page_with_their_reasons(api: httpx.Client, job_id: str, master: Master) -> None:
    path = f"/v1/jobs/{job_id}/failed-items"
    assert api.get(path).json() == {"items": [], "total": 0, "next_page_token": None}
    master.progress(job_id, Progress(items_failed=1000, items_short=3))
    raised = '"RUN_EXCEPTION","ValueError: ""bad"" {}","e.py:3"'
    lines = [f'"/in/{number}.txt",{number // 3},{raised.format(number)}' for number in range(7)]
    lines.append('"/in/x.txt",9,"RUN_TIMEOUT","It took too long.",""')
    written(master.root, job_id, *lines, "nonsense", '"(992 more items, which are not listed)",,,,')

    items, pages = all_pages(api, job_id, "limit=3", of="failed-items")
    assert (len(items), pages) == (8, 3)
    message = 'ValueError: "bad" 4'
    assert items[4] == {
        "item": "/in/4.txt", "mini_batch": 1, "category": "RUN_EXCEPTION", "message": message, "place": "e.py:3",
    }  # fmt: skip
    assert api.get(path).json()["total"] == 997

    def names(query: str) -> list[str]:
        return [each["item"] for each in api.get(f"{path}?{query}").json()["items"]]

    assert names("mini_batch=1") == ["/in/3.txt", "/in/4.txt", "/in/5.txt"]
    assert names("category=RUN_TIMEOUT") == names("text=too+long") == ["/in/x.txt"]
    assert api.get(f"{path}?page_token=e30").status_code == 422


def test_a_retry_takes_items_that_have_failed_alone(api: httpx.Client, job_id: str, master: Master) -> None:
    master.begin(job_id)
    alone = [LostItems(2, 1, RUN_FAILED), LostItems(5, 2, RUN_FAILED)]
    master.decide(job_id, 1, [[outcome(0), outcome(1, rows=7, lost=alone)]])
    master.end(job_id, JobState.COMPLETED)
    Registry(master.redis).retire(job_id, term=1)
    refused = api.post(f"/v1/jobs/{job_id}:retry", json={"mini_batches": [0]})
    assert (refused.status_code, "mini-batch 0 has not failed" in refused.text) == (422, True)
    assert api.post(f"/v1/jobs/{job_id}:retry", json={"mini_batches": [1]}).status_code == 202
