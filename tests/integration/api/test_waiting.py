"""Why a job doesn't run now, as a server says it: by what Redis, nodes and masters say, and to whom."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.wire.at_work import NodeWork
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master, beat
from tests.integration.api.test_events import frames
from tests.integration.api.test_people import OPERATOR, accepted

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def waiting_of(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """What it waits for, once that is worth a word."""
    deadline = time.monotonic() + 20
    while (waiting := accepted(client.get(f"/v1/jobs/{job_id}"))["waiting"]) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    answer: dict[str, Any] = waiting
    return answer


def explained(client: httpx.Client, job_id: str, **params: int) -> dict[str, Any]:
    return accepted(client.get(f"/v1/jobs/{job_id}/explanation", params=params))


def begun(master: Master, job_id: str, **fields: Any) -> None:
    master.begin(job_id)
    counts: dict[str, Any] = {"scheduled": 8, "published": 8, "listing_done": True, "queued_at": time.time() - 60}
    master.progress(job_id, Progress(**counts | fields))


def test_a_cluster_without_a_master_says_so_and_what_to_do(api: httpx.Client, job_id: str) -> None:
    began = time.monotonic()
    waiting = waiting_of(api, job_id)
    assert (waiting["condition"], waiting["text"]) == ("master", "no master runs")
    assert "parallelrun-master" in waiting["advice"]
    assert time.monotonic() - began < 20
    answer = explained(api, job_id)
    assert (answer["runs"], answer["answer"]) == (False, "no master runs")


def test_a_cluster_without_a_node_says_so_on_the_stream_of_those_who_watch(
    api: httpx.Client, job_id: str, master: Master, redis: Redis
) -> None:
    begun(master, job_id)
    with api.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        events = frames(response)
        snapshot = next(events)
        first = next(event for event in events if event.event == "waiting") if not snapshot.data["waiting"] else None
        waiting = first.data if first else snapshot.data["waiting"]
        assert (waiting["condition"], waiting["text"]) == ("nodes", "no node is there")
        assert "parallelrun-agent" in waiting["advice"]
        beat(redis)
        ended = next(event for event in events if event.event == "waiting")
        assert ended.data == {}, "a node is there: it waits for nothing more"


def test_conditions_are_met_one_after_the_other(api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
    begun(master, job_id)
    beat(redis, work={job_id: NodeWork(preparing="environment")})
    assert "its environment is built on node n1" in waiting_of(api, job_id)["text"]
    states = {each["name"]: each["state"] for each in explained(api, job_id)["conditions"]}
    assert states == {
        "master": "met", "disk_floor": "met", "listing": "met", "nodes": "met", "node_state": "met",
        "preparation": "waits", "slots": "met", "memory": "met",
    }  # fmt: skip


def test_a_mini_batch_is_explained_by_its_place(api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
    begun(master, job_id, published=4)
    beat(redis)
    assert explained(api, job_id, mini_batch=99)["conditions"][0]["text"].startswith("it has not been found yet")
    late = explained(api, job_id, mini_batch=6)
    assert [each["name"] for each in late["conditions"]][:2] == ["listed", "published"]
    assert late["mini_batch"] == 6
    assert api.get(f"/v1/jobs/{job_id}/explanation", params={"mini_batch": -1}).status_code == 422
    assert api.post(f"/v1/jobs/{job_id}:cancel").status_code == 202
    master.conclude(job_id, JobState.CANCELED)
    over = explained(api, job_id)
    assert over["answer"] == "it has ended: canceled"
    assert f"parallelrun job resume {job_id}" in over["advice"]


class TestWhoSeesWhat:
    @pytest.fixture
    def people(self, redis_url: str, tmp_path: Path) -> Iterator[tuple[ApiServer, httpx.Client, httpx.Client]]:
        with (
            ApiServer(
                tmp_path / "root", redis_url, "--token", OPERATOR, "--visibility", "own", insecure=False
            ) as server,
            ExitStack() as clients,
        ):
            operator = clients.enter_context(server.client(headers={"Authorization": f"Bearer {OPERATOR}"}))
            made = [accepted(operator.put(f"/v1/tokens/{name}", json={"scopes": ["submit"]})) for name in "ab"]
            headers = [{"Authorization": f"Bearer {each['token']}"} for each in made]
            yield server, *(clients.enter_context(server.client(headers=each)) for each in headers)  # type: ignore[misc]

    def test_a_job_behind_another_persons_names_it_only_where_all_is_seen(
        self, people: tuple[ApiServer, httpx.Client, httpx.Client], site: Site, redis: Redis
    ) -> None:
        server, anna, bert = people
        hers = accepted(anna.post("/v1/jobs", json=site.spec()))["id"]
        his = accepted(bert.post("/v1/jobs", json=site.spec()))["id"]
        master = Master(server.root, redis)
        begun(master, hers, running=4, recent_from=time.time() - 600, recent_to=time.time(), recent_mini_batches=10)
        begun(master, his)
        beat(redis, workers={hers: 4})
        text = waiting_of(bert, his)["text"]
        assert text.startswith("waiting behind another job (4 of 4 slots), about ")
        assert hers not in bert.get(f"/v1/jobs/{his}/explanation").text
        with server.client(headers={"Authorization": f"Bearer {OPERATOR}"}) as operator:
            assert f"waiting behind job {hers} (a, 4 of 4 slots), about " in waiting_of(operator, his)["text"]
        assert anna.get(f"/v1/jobs/{his}/explanation").status_code == 404
