"""Who may ask, what is told to operators, and what happens when something is away."""

from __future__ import annotations

import json
import signal
import socket
import stat
import statistics
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.states import JobState, NodeState
from parallelrun_core.store.connection import connect
from parallelrun_core.store.nodes import NodeInfo, Nodes
from parallelrun_core.store.registry import Registry
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

JOB = "job_" + "0" * 20


def every_request(api: httpx.Client) -> list[tuple[str, str]]:
    """Method and path of everything in the OpenAPI document."""
    document = api.get("/v1/openapi.json", headers={"Authorization": "Bearer right"}).json()
    return [
        (method.upper(), path.replace("{job_id}", JOB).replace("{path}", "x"))
        for path, methods in document["paths"].items()
        for method in methods
    ]


class TestToken:
    def test_no_route_is_open_without_it(self, redis_url: str, tmp_path: Path) -> None:
        with ApiServer(tmp_path, redis_url, "--token", "right") as server, server.client() as api:
            requests = every_request(api)
            assert len(requests) >= 14
            for method, path in [*requests, ("GET", "/v1/openapi.json"), ("GET", "/nowhere"), ("PUT", "/v1/jobs")]:
                is_open = path in ("/livez", "/readyz", "/metrics")
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic right"}):
                    answer = api.request(method, path, headers=headers)
                    assert (answer.status_code == 401) != is_open, (method, path, answer.text)
                    if not is_open:
                        assert answer.headers["content-type"] == "application/problem+json"
                        assert answer.headers["www-authenticate"].startswith("Bearer")
                right = api.request(method, path, headers={"Authorization": "bearer right"})
                assert right.status_code not in (401, 500), (method, path)

    def test_it_comes_from_the_environment_or_a_file(self, redis_url: str, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("from-file\n")
        for flags, env, token in (
            ((), {"PARALLELRUN_TOKEN": "from-env"}, "from-env"),
            (("--token-file", str(tmp_path / "secret")), {}, "from-file"),
        ):
            with ApiServer(tmp_path, redis_url, *flags, insecure=False, env=env) as server, server.client() as api:
                assert api.get("/v1/jobs").status_code == 401
                assert api.get("/v1/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
                server.stop()
            assert token not in "".join(server.raw_log)

    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
    def test_one_is_made_for_every_server(self, host: str, redis_url: str, tmp_path: Path) -> None:
        tokens, root, path = [], tmp_path / "root", tmp_path / "state" / "parallelrun" / "token"
        env = {"XDG_STATE_HOME": str(tmp_path / "state")}
        for _ in range(2):
            with (
                ApiServer(root, redis_url, "--host", host, insecure=False, env=env) as server,
                server.client() as api,
            ):
                token = path.read_text().strip()
                assert api.get("/v1/jobs").status_code == 401
                assert api.get("/metrics").status_code == (401 if host == "0.0.0.0" else 200)
                headers = {"Authorization": f"Bearer {token}"}
                assert api.get("/v1/jobs", headers=headers).status_code == 200
                server.stop()
            assert token not in "".join(server.raw_log)
            assert server.log[0]["token_file"] == str(path)
            tokens.append(token)

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(tokens[0]) >= 40
        assert tokens[0] == tokens[1]

    def test_an_empty_token_file_does_not_open_the_door(self, redis_url: str, tmp_path: Path) -> None:
        (tmp_path / "empty").write_text("")
        server = ApiServer(tmp_path, redis_url, "--token-file", str(tmp_path / "empty"), insecure=False)
        server.start()

        server.wait_for("not_started")
        assert server.exit_code() == 1


class TestOrigin:
    @pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::2]:80"])
    def test_other_names_are_refused(self, host: str, api: httpx.Client) -> None:
        answer = api.get("/v1/jobs", headers={"Host": host})

        assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:80", "[::1]"])
    def test_own_names(self, host: str, api: httpx.Client) -> None:
        assert api.get("/livez", headers={"Host": host}).status_code == 200

    def test_more_names_can_be_allowed(self, redis_url: str, tmp_path: Path) -> None:
        with (
            ApiServer(tmp_path, redis_url, "--allowed-hosts", "jobs.example, other.example") as server,
            server.client() as api,
        ):
            assert api.get("/livez", headers={"Host": "jobs.example:443"}).status_code == 200
            assert api.get("/livez", headers={"Host": "evil.example"}).status_code == 421

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
    def test_pages_of_other_origins_change_nothing(self, origin: str, api: httpx.Client, job_id: str) -> None:
        answer = api.post(f"/v1/jobs/{job_id}:cancel", headers={"Origin": origin})

        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
        assert api.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"

    def test_pages_of_its_own_origin(self, api: httpx.Client, job_id: str) -> None:
        answer = api.post(f"/v1/jobs/{job_id}:cancel", headers={"Origin": str(api.base_url).rstrip("/")})

        assert answer.status_code == 202

    def test_no_page_may_read_answers(self, api: httpx.Client) -> None:
        answer = api.get("/v1/jobs", headers={"Origin": "https://evil.example"})

        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert api.options("/v1/jobs").status_code == 405


class TestProblems:
    @pytest.mark.parametrize(
        "path, allowed",
        [
            ("/v1/jobs", "GET, POST"),
            (f"/v1/jobs/{JOB}", "GET"),
            (f"/v1/jobs/{JOB}:retry", "POST"),
            (f"/v1/jobs/{JOB}/logs/a/b", "GET"),
        ],
    )
    def test_a_wrong_method_is_answered_with_all_that_are_right(
        self, path: str, allowed: str, api: httpx.Client
    ) -> None:
        answer = api.request("TRACE", path)

        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)

    @pytest.mark.parametrize("ids", ["[false]", "[1.0]", '["1"]', "[-1]", "[18446744073709551616]"])
    def test_ids_are_whole_numbers_and_nothing_that_could_be_one(self, ids: str, api: httpx.Client) -> None:
        body = f'{{"mini_batches": {ids}}}'
        answer = api.post(f"/v1/jobs/{JOB}:retry", content=body, headers={"Content-Type": "application/json"})

        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/body/mini_batches/0")

    def test_a_body_that_is_no_text_is_a_problem_of_the_contract(self, api: httpx.Client) -> None:
        headers = {"Content-Type": "application/json"}
        answer = api.post(f"/v1/jobs/{JOB}:retry", content=b"\xff\xfe", headers=headers)

        documented = api.get("/v1/openapi.json").json()["paths"]["/v1/jobs/{job_id}:retry"]["post"]["responses"]
        assert str(answer.status_code) in documented

    @pytest.mark.parametrize(
        "method, path, status, code",
        [
            ("GET", "/nowhere", 404, "not_found"),
            ("GET", "/v1/jobs/", 404, "not_found"),
            ("GET", "/docs", 404, "not_found"),
            ("PUT", "/v1/jobs", 405, "method_not_allowed"),
            ("DELETE", f"/v1/jobs/{JOB}", 405, "method_not_allowed"),
            ("GET", f"/v1/jobs/{JOB}:cancel", 405, "method_not_allowed"),
            ("GET", "/v1/jobs?limit=x", 422, "invalid_input"),
        ],
    )
    def test_every_error_has_the_same_form(
        self, method: str, path: str, status: int, code: str, api: httpx.Client
    ) -> None:
        answer = api.request(method, path)

        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
        assert problem["type"] == f"urn:parallelrun:problem:{code}"
        assert problem["instance"] == path.partition("?")[0]
        assert problem["title"]
        assert problem["detail"]

    def test_a_bug_is_told_as_one_and_found_in_the_log(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            job_id = api.post("/v1/jobs", json=site.spec()).json()["id"]
            record = JobFolder(server.root, job_id).path / "job.json"
            record.write_text(json.dumps({**json.loads(record.read_text()), "submitted": 1e300}))  # no date

            answer = api.get(f"/v1/jobs/{job_id}")
            entry = server.wait_for("request_failed")

        assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
        assert answer.json()["trace_id"] == entry["trace_id"]
        assert "Traceback" not in answer.text

    def test_a_body_over_the_limit(self, redis_url: str, tmp_path: Path) -> None:
        with (
            ApiServer(tmp_path, redis_url, "--max-body-bytes", "2000") as server,
            server.client() as api,
        ):
            declared = api.post("/v1/jobs", content=b"x" * 2001, headers={"Content-Type": "application/yaml"})
            form = api.post("/v1/jobs", data={"spec": "a: 1"}, files={"code": b"x" * 2001})
            chunked = api.post(
                "/v1/jobs", content=iter([b"x" * 1500] * 2), headers={"Content-Type": "application/yaml"}
            )

        for answer in (declared, form, chunked):
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


class TestNodes:
    def test_each_is_shown_and_counted_in_its_state(self, api: httpx.Client, redis: Redis) -> None:
        def info(node: str, state: NodeState = NodeState.READY) -> NodeInfo:
            return NodeInfo(
                node=node, session=f"{node}-1", host="h", pid=1, slots=4, busy=2, state=state, version="0.1.0",
                started=1_763_700_000.0, jobs=[JOB],
            )  # fmt: skip

        nodes_known = Nodes(redis)
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
        metrics = api.get("/metrics").text
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
        assert "job_" not in text.replace("job_id", "")
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
        """With Nagle's algorithm on, the two packets of an answer are 40 ms apart."""
        took = []
        for _ in range(31):
            began = time.monotonic()
            api.get("/v1/nodes")
            took.append(time.monotonic() - began)

        assert statistics.median(took) < 0.035

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


def test_roots_that_jobs_must_stay_in(redis_url: str, redis: Redis, site: Site, tmp_path: Path) -> None:
    with (
        ApiServer(tmp_path / "root", redis_url, "--allowed-roots", f"{site.data}:{site.code}") as server,
        server.client() as api,
    ):
        (site.data / "link").symlink_to("/etc")
        fine = api.post("/v1/jobs", json=site.spec())
        outside = api.post("/v1/jobs", json=site.spec(inputs={"data": "/etc"}))
        by_link = api.post("/v1/jobs", json=site.spec(inputs={"data": str(site.data / "link")}))
        by_dots = api.post("/v1/jobs", json=site.spec(inputs={"data": f"{site.data}/../../../etc"}))
        by_pattern = api.post("/v1/jobs", json=site.spec(inputs={"data": "/e*/passwd"}))
        output = api.post("/v1/jobs", json=site.spec(output=str(tmp_path / "out")))

    assert fine.status_code == 202
    for answer in (outside, by_link, by_dots, by_pattern, output):
        assert answer.status_code == 422
        assert "outside of the folders that jobs may use" in answer.json()["errors"][0]["message"]


def test_only_the_shared_folder_when_others_can_reach_the_server(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    with (
        ApiServer(tmp_path / "root", redis_url, "--host", "0.0.0.0", "--token", "t") as server,
        server.client(headers={"Authorization": "Bearer t"}) as api,
    ):
        answer = api.post("/v1/jobs", json=site.spec())

    assert [entry["pointer"] for entry in answer.json()["errors"]] == ["/code", "/inputs/data/path"]


def test_a_named_output_folder_that_a_job_swaps_for_a_link(
    redis_url: str, redis: Redis, site: Site, tmp_path: Path
) -> None:
    allowed = f"{site.data}:{site.code}:{tmp_path}/out"
    (tmp_path / "out").mkdir()
    with ApiServer(tmp_path / "root", redis_url, "--allowed-roots", allowed) as server, server.client() as api:
        spec = site.spec(output=str(tmp_path / "out" / "mine"), append_row_file_name="passwd")
        job_id = api.post("/v1/jobs", json=spec).json()["id"]
        (tmp_path / "out" / "mine").symlink_to("/etc")

        assert api.get(f"/v1/jobs/{job_id}/outputs/passwd").status_code == 404
        assert api.get(f"/v1/jobs/{job_id}/outputs").status_code == 404


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
        server.root.rmdir()
        answer = api.get("/readyz")

    assert (answer.status_code, answer.json()["checks"]["root"]) == (503, "FileNotFoundError")
