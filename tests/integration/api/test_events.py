"""Following a job: nothing is missed, nothing is told twice on a resumed stream, and it ends when the job has."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun import Client
from parallelrun_api.context import build_context
from parallelrun_api.routes import events
from parallelrun_api.settings import ApiSettings
from parallelrun_api.views.feeds import Feeds
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.store.connection import connect
from parallelrun_core.store.event_stream import EventStreams
from parallelrun_core.store.registry import Registry
from parallelrun_core.untrusted.sanitize import visible
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Frame:
    id: str
    event: str
    data: dict[str, Any]


def frames(response: httpx.Response) -> Iterator[Frame]:
    """The events of a stream, as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif not line and "data" in fields:
            yield Frame(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def following(api: httpx.Client, job_id: str, **headers: str) -> Iterator[Iterator[Frame]]:
    with api.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as response:
        assert response.status_code == 200
        yield frames(response)


def test_from_submission_to_the_end(api: httpx.Client, job_id: str, master: Master) -> None:
    with following(api, job_id) as stream:
        snapshot = next(stream)
        master.begin(job_id)
        master.progress(job_id, Progress(done=1))
        master.error(job_id, {"message": "bad row"})
        master.end(job_id, JobState.COMPLETED, rows=b"1\n")
        rest = list(stream)

    assert (snapshot.event, snapshot.id, snapshot.data["state"]) == ("snapshot", "", "queued")
    assert [frame.event for frame in rest] == ["state", "progress", "error", "state", "state", "end"]
    assert rest[0].data == {"state": "processing"}
    assert all(frame.id for frame in rest[:-1])
    assert (rest[-1].id, rest[-1].data["state"], rest[-1].data["output"]["bytes"]) == ("", "completed", 2)


def test_every_character_comes_through(shared_api: ApiServer, site: Site, redis: Redis, master: Master) -> None:
    odd = "\x0b \x0c \x1c \x85 \u2028 \u2029 \n \r\n ."
    with Client(f"http://127.0.0.1:{shared_api.port}") as client:
        job_id = client.jobs.create(site.spec(description=odd), upload_code=False).id
        stream = client.jobs.events(job_id)
        snapshot = next(stream)
        master.begin(job_id)
        master.error(job_id, {"message": odd})
        master.end(job_id, JobState.FAILED)
        told = {event.event: event for event in stream}

    assert snapshot.job().spec["description"] == odd
    assert told["error"].data["message"] == visible(odd)  # it may come from a script
    assert told["end"].job().spec["description"] == odd


def test_the_headers_keep_proxies_from_holding_it_back(api: httpx.Client, job_id: str) -> None:
    with api.stream("GET", f"/v1/jobs/{job_id}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-store"


def test_resumed_behind_the_last_event_that_was_seen(api: httpx.Client, job_id: str, master: Master) -> None:
    with following(api, job_id) as stream:
        next(stream)
        master.begin(job_id)
        for done in range(1, 6):
            master.progress(job_id, Progress(done=done))
        seen = [next(stream) for _ in range(3)]
    master.end(job_id, JobState.FAILED)

    with following(api, job_id, **{"Last-Event-ID": seen[-1].id}) as stream:
        rest = list(stream)

    assert [frame.data["done"] for frame in seen[1:]] == [1, 2]
    assert rest[0].event == "snapshot"
    assert [frame.data["done"] for frame in rest[1:-2]] == [3, 4, 5]
    assert [frame.event for frame in rest[-2:]] == ["state", "end"]


def test_from_the_beginning_by_query(api: httpx.Client, job_id: str, master: Master) -> None:
    master.begin(job_id)
    master.end(job_id, JobState.FAILED)

    with api.stream("GET", f"/v1/jobs/{job_id}/events?last_event_id=0") as response:
        told = [frame.event for frame in frames(response)]

    assert told == ["snapshot", "state", "state", "end"]


def test_more_events_than_a_feed_keeps(api: httpx.Client, job_id: str, master: Master) -> None:
    master.begin(job_id)
    for done in range(700):
        master.progress(job_id, Progress(done=done))

    with (
        api.stream("GET", f"/v1/jobs/{job_id}/events?last_event_id=0") as slow,
        api.stream("GET", f"/v1/jobs/{job_id}/events") as fresh,
    ):
        for done in range(700, 1100):
            master.progress(job_id, Progress(done=done))
        master.end(job_id, JobState.FAILED)
        all_of_it = [frame.data["done"] for frame in frames(slow) if frame.event == "progress"]
        news = [frame.data["done"] for frame in frames(fresh) if frame.event == "progress"]

    assert all_of_it == list(range(1100))
    assert news == list(range(700, 1100))


def test_the_end_waits_for_the_result(api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
    with following(api, job_id) as stream:
        next(stream)
        api.post(f"/v1/jobs/{job_id}:cancel")
        assert next(stream).data == {"state": "canceled"}
        master.announce_end(job_id)
        timer = threading.Timer(0.5, master.conclude, [job_id, JobState.CANCELED])
        timer.start()
        began = time.monotonic()
        end = next(stream)
        timer.join()

    assert time.monotonic() - began >= 0.4
    assert (end.event, end.data["state"]) == ("end", "canceled")
    assert end.data["ended"] is not None


def test_a_job_that_is_over(api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
    master.begin(job_id)
    master.end(job_id, JobState.FAILED)
    redis.flushall()

    with following(api, job_id) as stream:
        told = [frame.event for frame in stream]

    assert told == ["snapshot", "end"]


def test_secrets_are_masked(api: httpx.Client, site: Site, master: Master) -> None:
    secret = 'pass"wörd 7731'
    job_id = api.post("/v1/jobs", json=site.spec(environment_variables={"KEY": secret})).json()["id"]
    master.begin(job_id)
    master.error(job_id, {"message": f"can't log in with {secret}"})
    master.end(job_id, JobState.FAILED)

    with api.stream("GET", f"/v1/jobs/{job_id}/events?last_event_id=0") as response:
        found = list(frames(response))

    assert {frame.data["message"] for frame in found if frame.event == "error"} == {"can't log in with ***"}


def test_secrets_that_are_words_of_ours_garble_no_event(api: httpx.Client, site: Site, master: Master) -> None:
    secrets = {"STAGE": "processing", "X": "scheduled", "ON_ERROR": "failed", "LIMIT": "100000", "Y": "message"}
    job_id = api.post("/v1/jobs", json=site.spec(environment_variables=secrets)).json()["id"]
    master.begin(job_id)
    master.progress(job_id, Progress(scheduled=100_000, failed=100_000))
    master.error(job_id, {"message": "failed", "count": 100_000})
    master.end(job_id, JobState.FAILED)

    with api.stream("GET", f"/v1/jobs/{job_id}/events?last_event_id=0") as response:
        told = {frame.event: frame.data for frame in frames(response) if frame.data.get("state") != "queued"}

    assert (told["progress"]["scheduled"], told["progress"]["failed"]) == (100_000, 100_000)
    assert told["error"] == {"message": "***", "count": 100_000}
    assert told["state"] == {"state": "failed"}


@pytest.mark.parametrize("wrong", ["x", "1-x", "-", "1-2-3", "9" * 30])
def test_ids_that_are_none(wrong: str, api: httpx.Client, job_id: str) -> None:
    answer = api.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": wrong})

    assert answer.status_code == 422


def test_there_is_no_such_job(api: httpx.Client) -> None:
    assert api.get("/v1/jobs/job_00000000000000000000/events").status_code == 404


def test_a_stream_outlives_a_restart_of_redis(site: Site, tmp_path: Path) -> None:
    with (
        RedisServer("--appendonly", "yes", "--appendfsync", "always") as redis_server,
        ApiServer(tmp_path / "root", redis_server.url, volatile=False) as server,
        server.client() as api,
    ):
        job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
        with following(api, job_id) as stream:
            next(stream)
            with connect(redis_server.url) as client:
                Master(server.root, client).begin(job_id)
            assert next(stream).data == {"state": "processing"}

            redis_server.kill()
            assert api.get(f"/v1/jobs/{job_id}").status_code == 503
            redis_server.start()
            with connect(redis_server.url) as client:
                Master(server.root, client).end(job_id, JobState.FAILED)
            rest = list(stream)

    assert [(frame.event, frame.data.get("state")) for frame in rest] == [("state", "failed"), ("end", "failed")]


def test_many_watchers_need_few_connections_and_threads(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api, ExitStack() as stack:
        job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
        before = len(redis.client_list())
        request = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        sockets = []
        for _ in range(200):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(request)
            sockets.append(stack.enter_context(connection.makefile("rb")))
        for stream in sockets:
            read_until(stream, b"event: snapshot")
        assert server.process is not None
        threads = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
        connections = len(redis.client_list()) - before

        master = Master(server.root, redis)
        master.begin(job_id)
        master.end(job_id, JobState.FAILED)
        for stream in sockets:
            read_until(stream, b"event: end")

    assert threads < 60
    assert connections < 60


def test_a_silent_stream_shows_that_it_lives_though_its_feed_stirs(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    async def comments() -> list[bytes]:
        settings = ApiSettings(root=tmp_path / "root", redis_url=redis_url)
        context = build_context(settings)
        quick = Feeds(EventStreams(redis_url, wait_s=0.02), context.jobs.has_ended)
        context = dataclasses.replace(context, heartbeat_s=0.2, feeds=quick)
        record = JobRecord(job_id=new_job_id(), submitted=0.0, code="", spec=site.spec())
        JobFolder(tmp_path / "root", record.job_id).create(record)
        Registry(redis).add_job(record.job_id, submitted=0.0)
        stream = (await events.events(record.job_id, context)).body_iterator
        assert isinstance(stream, AsyncGenerator)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await anext(stream)
                return [bytes(await anext(stream)) for _ in range(2)]
        finally:
            await stream.aclose()
            await context.close()

    assert asyncio.run(comments()) == [b": still here\n\n"] * 2


def read_until(stream: Any, mark: bytes) -> None:
    while mark not in stream.readline():
        pass


def test_no_more_watchers_than_allowed(redis_url: str, redis: Redis, site: Site, tmp_path: Path) -> None:
    with ApiServer(tmp_path / "root", redis_url, "--max-streams", "1") as server, server.client() as api:
        job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
        with following(api, job_id) as stream:
            next(stream)
            refused = api.get(f"/v1/jobs/{job_id}/events")

    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
    assert "retry-after" in refused.headers
