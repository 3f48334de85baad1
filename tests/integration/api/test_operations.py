"""What is told to operators, and what happens when something is away."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.answers.nodes import NodePressure
from parallelrun_core.layout import code_store, key_claims
from parallelrun_core.store.connection import connect
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import JobState, NodeState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

JOB = "job_" + "0" * 20


class TestNodes:
    def test_each_is_shown_and_counted_in_its_state(self, api: httpx.Client, redis: Redis) -> None:
        def info(node: str, state: NodeState = NodeState.READY) -> NodeInfo:
            return NodeInfo(
                node=node, session=f"{node}-1", host="h", pid=1, slots=4, busy=2, state=state, version="0.1.0",
                started=1_763_700_000.0, jobs=[JOB], pressure=pressures.get(node),
            )  # fmt: skip

        pressures = {
            "a": NodePressure(of="cgroup", cpu=0.25, io=0.5, memory=0.0),
            "b": NodePressure(of="machine", cpu=0.75, io=0.0, memory=0.0),
        }
        nodes_known = NodeRegistry(redis)
        nodes_known.beat(info("b"), lease_ms=60_000)
        nodes_known.beat(info("a", NodeState.DRAINING), lease_ms=60_000)
        nodes_known.beat(info("c"), lease_ms=-1)
        nodes_known.beat(info("d", NodeState.DISK_FULL), lease_ms=60_000)

        nodes = api.get("/v1/nodes").json()["items"]

        assert [(node["node"], node["state"], node["busy"]) for node in nodes] == [
            ("a", "draining", 2),
            ("b", "ready", 2),
            ("c", "lost", 0),
            ("d", "disk_full", 2),
        ]
        assert nodes[0]["started"] == "2025-11-21T04:40:00.000Z"
        assert [node["pressure"] and node["pressure"]["cpu"] for node in nodes] == [0.25, 0.75, None, None]
        metrics = api.get("/metrics").text
        assert 'parallelrun_node_pressure_max{resource="cpu"} 0.75' in metrics
        assert 'parallelrun_node_pressure_max{resource="io"} 0.5' in metrics
        for state in NodeState:
            assert f'parallelrun_agents{{state="{state}"}} 1.0' in metrics
        assert 'parallelrun_slots{state="idle"} 6.0' in metrics


class TestMetrics:
    def test_jobs_and_requests_without_ids(self, api: httpx.Client, job_id: str) -> None:
        api.get(f"/v1/jobs/{job_id}")
        api.get("/no/such/thing")
        api.request("BREW", "/v1/jobs")

        text = api.get("/metrics").text

        assert 'parallelrun_jobs{state="queued"} 1.0' in text
        assert 'parallelrun_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="200"}' in text
        assert 'route="unmatched",status="404"' in text
        assert "parallelrun_redis_up 1.0" in text
        assert "job_" not in text.replace("job_id", "").replace("job_bytes", "")
        assert "BREW" not in text


class TestRedisAway:
    def test_what_needs_it_says_so_and_the_rest_goes_on(self, site: Site, tmp_path: Path) -> None:
        with (
            RedisServer() as redis_server,
            ApiServer(tmp_path / "root", redis_server.url) as server,
            server.client() as api,
        ):
            running, over = (api.post("/v1/jobs", json=site.spec()).json()["id"] for _ in range(2))
            with connect(redis_server.url) as client:
                Master(server.root, client).begin(over)
                Master(server.root, client).end(over, JobState.COMPLETED, rows=b"1\n")
            before = set(server.root.rglob("job.json"))
            redis_server.kill()

            for answer in (
                api.get(f"/v1/jobs/{running}"),
                api.get(f"/v1/jobs/{running}?wait=5&since=9"),
                api.get(f"/v1/jobs/{running}/events"),
                api.get(f"/v1/jobs/{running}/mini-batches?status=ready"),
                api.post(f"/v1/jobs/{running}:cancel"),
                api.post("/v1/jobs", json=site.spec()),
                api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "k"}),
                api.get("/v1/jobs"),
                api.get("/v1/nodes"),
            ):
                assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), answer.text
                assert int(answer.headers["retry-after"]) > 0
            assert set(server.root.rglob("job.json")) == before
            assert api.get(f"/v1/jobs/{over}").json()["state"] == "completed"
            assert api.get(f"/v1/jobs/{over}/outputs/parallel_run_step.txt").content == b"1\n"
            assert api.get("/livez").status_code == 200
            assert api.get("/readyz").json()["checks"]["redis"] != "ok"
            assert api.get("/readyz").status_code == 503
            assert "parallelrun_redis_up 0.0" in api.get("/metrics").text

            redis_server.start()
            assert api.get("/readyz").status_code == 200
            assert api.post("/v1/jobs", json=site.spec()).status_code == 202

    def test_a_job_accepted_in_the_very_moment_is_registered_later(self, site: Site, tmp_path: Path) -> None:
        """Redis refuses to write between the look at it and the registration: the answer is yes, and stays true."""
        with (
            RedisServer() as redis_server,
            ApiServer(tmp_path / "root", redis_server.url) as server,
            server.client() as api,
            connect(redis_server.url) as client,
        ):
            server.wait_for("redis_ready")
            client.config_set("min-replicas-to-write", 1)
            answer = api.post("/v1/jobs", json=site.spec())
            job_id = answer.json()["id"]
            assert (answer.status_code, answer.json()["state"]) == (202, "queued")
            assert Registry(client).state(job_id) is None

            client.config_set("min-replicas-to-write", 0)
            server.wait_for("job_registered_late", job_id=job_id)
            assert Registry(client).active_jobs() == [job_id]

    def test_a_server_that_starts_first(self, tmp_path: Path) -> None:
        with RedisServer() as redis_server:
            redis_server.kill()
            with ApiServer(tmp_path, redis_server.url) as server, server.client() as api:
                assert api.get("/livez").status_code == 200
                assert api.get("/readyz").status_code == 503
                redis_server.start()
                server.wait_for("redis_ready")
                assert api.get("/readyz").status_code == 200

    @pytest.mark.parametrize(
        "options, reason",
        [
            (("--appendonly", "no"), "append-only file is off"),
            (("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"), "allkeys-lru"),
        ],
    )
    def test_one_that_would_lose_jobs(self, options: tuple[str, ...], reason: str, tmp_path: Path) -> None:
        with RedisServer(*options) as redis_server:
            server = ApiServer(tmp_path, redis_server.url, volatile=False)
            server.start()
            assert reason in server.wait_for("redis_unfit")["error"]
            assert server.exit_code() == 3

    def test_one_that_does_not_say(self, tmp_path: Path) -> None:
        with RedisServer() as redis_server:
            server = ApiServer(tmp_path, redis_server.url_without_info(), volatile=False)
            server.start()
            assert "INFO is not permitted" in server.wait_for("redis_unfit")["error"]
            assert server.exit_code() == 3
            assert ":pw@" not in "".join(server.raw_log)


class TestCrash:
    def test_killed_between_folder_and_redis(self, redis_url: str, redis: Redis, site: Site, tmp_path: Path) -> None:
        root = tmp_path / "root"
        server = ApiServer(root, redis_url, env={"PARALLELRUN_FAILPOINTS": "api.accepted=kill"})
        with server, server.client() as api:
            with pytest.raises(httpx.TransportError):
                api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "k"})
            assert server.process is not None
            assert server.process.wait(20) == -signal.SIGKILL
        (left,) = (path.parent.name for path in root.glob("jobs/*/job.json"))
        assert Registry(redis).active_jobs() == []

        with ApiServer(root, redis_url) as server, server.client() as api:
            server.wait_for("job_registered_late", job_id=left)
            again = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "k"})

        assert again.json()["id"] == left
        assert Registry(redis).active_jobs() == [left]
        assert len(list(root.glob("jobs/*"))) == 1

    def test_what_can_not_be_cleaned_up_keeps_no_job_from_being_registered(
        self, redis_url: str, site: Site, tmp_path: Path
    ) -> None:
        root = tmp_path / "root"
        server = ApiServer(root, redis_url, env={"PARALLELRUN_FAILPOINTS": "api.accepted=kill"})
        with server, server.client() as api, pytest.raises(httpx.TransportError):
            api.post("/v1/jobs", json=site.spec())
        (left,) = (path.parent.name for path in root.glob("jobs/*/job.json"))
        abandoned, keys = code_store(root) / ".incoming-1", key_claims(root)
        abandoned.mkdir()
        os.utime(abandoned, (0, 0))
        shutil.rmtree(keys)
        keys.touch()

        with ApiServer(root, redis_url) as server:
            server.wait_for("clean_up_delayed")
            server.wait_for("job_registered_late", job_id=left)
            keys.unlink()
            while abandoned.exists():
                assert server.process is not None
                assert server.process.poll() is None
                time.sleep(0.02)  # a folder that is removed tells nobody

    def test_a_job_that_is_over_is_not_registered_again(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        root = tmp_path / "root"
        with ApiServer(root, redis_url) as server, server.client() as api:
            job_id = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "k"}).json()["id"]
            Master(root, redis).begin(job_id)
            Master(root, redis).end(job_id, JobState.COMPLETED)
            Registry(redis).retire(job_id, term=1)

            again = api.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "k"})

        assert again.json()["state"] == "completed"
        assert Registry(redis).active_jobs() == []


class TestProcess:
    def test_answers_do_not_wait_for_acknowledgements(self, api: httpx.Client) -> None:
        """With Nagle's algorithm on, the two packets of each answer are 40 ms apart; a busy machine spares some."""
        took = []
        for _ in range(31):
            began = time.monotonic()
            api.get("/v1/nodes")
            took.append(time.monotonic() - began)

        assert min(took) < 0.035

    def test_sigterm_ends_streams_and_polls_and_exits_with_zero(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
            polled: list[httpx.Response] = []
            with server.client() as other:
                poll = threading.Thread(target=lambda: polled.append(other.get(f"/v1/jobs/{job_id}?wait=60&since=99")))
                poll.start()
                with api.stream("GET", f"/v1/jobs/{job_id}/events") as response:
                    lines = response.iter_lines()
                    next(lines)
                    while "parallelrun_event_streams 2.0" not in httpx.get(f"{api.base_url}/metrics").text:
                        pass
                    began = time.monotonic()
                    assert server.stop() == 0
                    assert "event: end" not in list(lines)
                poll.join()

        assert time.monotonic() - began < 5
        assert polled[0].json()["state"] == "queued"
        assert server.log[-1]["action"] == "stopped"

    def test_a_port_that_is_taken(self, redis_url: str, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = ApiServer(tmp_path, redis_url, "--port", str(taken.getsockname()[1]))
            server.start()
            assert "in use" in server.wait_for("not_started")["error"]
            assert server.exit_code() == 1

    def test_flags_that_are_wrong(self, redis_url: str, tmp_path: Path) -> None:
        server = ApiServer(tmp_path, redis_url, "--max-streams", "0")
        server.start()

        assert "--max-streams" in server.wait_for("not json")["line"]
        assert server.exit_code() == 1

    def test_the_log_has_a_line_for_each_request_and_no_secret(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        with ApiServer(tmp_path / "root", redis_url, "--token", "canary-token") as server, server.client() as api:
            headers = {"Authorization": "Bearer canary-token", "Idempotency-Key": "canary-key"}
            spec = site.spec(environment_variables={"A": "canary-value"})
            job_id = api.post("/v1/jobs", json=spec, headers=headers).json()["id"]
            api.post("/v1/jobs", json=site.spec(environment_variables={"A": ["canary-value"]}), headers=headers)
            api.get(f"/v1/jobs/{job_id}?wait=0&x=canary-query", headers=headers)
            api.get("/canary-path", headers=headers)
            server.stop()

        text = "".join(server.raw_log)
        requests = [entry for entry in server.log if entry["action"] == "request"]
        assert [(entry["method"], entry["route"], entry["status"]) for entry in requests] == [
            ("POST", "/v1/jobs", 202),
            ("POST", "/v1/jobs", 422),
            ("GET", "/v1/jobs/{job_id}", 200),
            ("GET", "unmatched", 404),
        ]
        assert requests[2]["job_id"] == job_id
        assert "canary" not in text
        assert all("action" in entry and "service" in entry for entry in server.log)


def test_an_upload_that_breaks_off_leaves_nothing(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    with ApiServer(tmp_path / "root", redis_url) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000000\r\n"
                b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
                b'--x\r\nContent-Disposition: form-data; name="code"\r\n\r\n' + b"z" * (3 << 20)
            )
        entry = server.wait_for("request")

    assert entry["status"] == 499
    assert [path for path in server.root.rglob("*") if path.is_file()] == []


def test_a_root_folder_that_is_gone(redis_url: str, redis: Redis, tmp_path: Path) -> None:
    with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
        while len([*server.root.glob("keys/*")]) < 2:  # made in the background: of today and of tomorrow
            time.sleep(0.02)  # a folder can't be waited for; the test's own limit of time ends this
        shutil.rmtree(server.root)
        answer = api.get("/readyz")

    assert (answer.status_code, answer.json()["checks"]["root"]) == (503, "FileNotFoundError")
