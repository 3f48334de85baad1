"""Quotas of jobs and submissions, also for requests that come at once to several servers; and what is used."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from parallelrun.client import Client
from parallelrun.models import Quota
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import retention_of
from parallelrun_core.retention.policy import JobFacts
from parallelrun_core.store import keys
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.reservations import ReservationResult, Reservations, Reserving
from parallelrun_core.store.slot_quotas import SlotQuotas
from parallelrun_core.store.usage import UsageStore, Used
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master
from tests.integration.api.test_people import OPERATOR, People, accepted, client_of, served

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

AT_ONCE = 24
ROUNDS = 3


def at_once(servers: list[ApiServer], token: str, spec: dict[str, Any], key: str = "") -> list[httpx.Response]:
    """Submit a job by as many clients, to the servers in turn, all at the same moment."""
    gate = threading.Barrier(AT_ONCE)

    def submit(number: int) -> httpx.Response:
        with client_of(servers[number % len(servers)], token) as client:
            client.get("/v1/session")  # it is connected
            gate.wait(60)
            return client.post("/v1/jobs", json=spec, headers={"Idempotency-Key": key} if key else {})

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(submit, range(AT_ONCE)))


def test_submissions_at_the_same_moment_get_no_more_than_a_quota(redis_url: str, tmp_path: Path, site: Site) -> None:
    check_submissions_at_the_same_moment(redis_url, tmp_path, site)


def check_submissions_at_the_same_moment(redis_url: str, tmp_path: Path, site: Site, without: str = "") -> None:
    """Submit many jobs at once to two servers, several times."""
    with ExitStack() as running:
        servers = [running.enter_context(served(redis_url, tmp_path / "root", without=without)) for _ in range(2)]
        operator = running.enter_context(client_of(servers[0], OPERATOR))
        token = accepted(operator.put("/v1/tokens/anna", json={"scopes": ["submit"]}))["token"]
        for most in range(2, 2 + ROUNDS):
            accepted(operator.put("/v1/quotas/anna", json={"jobs": most}))
            answers = at_once(servers, token, site.spec())
            refused = [answer.json() for answer in answers if answer.status_code == 429]
            jobs = [answer.json()["id"] for answer in answers if answer.status_code == 202]
            assert (len(jobs), len(refused)) == (most, AT_ONCE - most)
            assert all(f"and may have {most}" in each["detail"] for each in refused)
            assert len(list((tmp_path / "root" / "jobs").iterdir())) == sum(range(2, most + 1))
            for job_id in jobs:
                accepted(operator.post(f"/v1/jobs/{job_id}:cancel"))
        accepted(operator.put("/v1/quotas/anna", json={"submissions_per_minute": 200}))
        before = sum(answer.status_code == 202 for answer in at_once(servers, token, site.spec()))
        assert before == AT_ONCE


def test_no_more_are_accepted_in_a_minute_than_a_quota(
    redis_url: str, redis: Redis, tmp_path: Path, site: Site
) -> None:
    with served(redis_url, tmp_path / "root") as server, ExitStack() as clients:
        people = People(server, clients)
        accepted(people.operator.put("/v1/quotas/everybody", json={"submissions_per_minute": 5}))
        for minute in range(1, 4):  # a minute may end in between: then as many more are accepted
            answers = at_once([server], people.anna.headers["Authorization"].removeprefix("Bearer "), site.spec())
            counts = [int(redis.hget(key, "anna") or 0) for key in redis.keys(f"{keys.SUBMISSIONS}*")]
            assert max(counts) <= 5
            if len(counts) == minute == 1:
                assert sum(answer.status_code == 202 for answer in answers) == 5
                assert counts == [5]
        bad = people.bert.post("/v1/jobs", json={**site.spec(), "mini_batch_size": "never"})
        assert bad.status_code == 422
        assert people.bert.post("/v1/jobs", json=site.spec()).status_code == 202, "what is refused counts for nothing"


def test_the_same_request_at_the_same_moment_is_one_job(redis_url: str, tmp_path: Path, site: Site) -> None:
    with ExitStack() as running:
        servers = [running.enter_context(served(redis_url, tmp_path / "root")) for _ in range(2)]
        people = People(servers[0], running)
        accepted(people.operator.put("/v1/quotas/anna", json={"jobs": 1}))
        token = people.anna.headers["Authorization"].removeprefix("Bearer ")
        answers = at_once(servers, token, site.spec(), key="nightly")
        assert {answer.status_code for answer in answers} <= {202, 409, 429}
        again = people.anna.post("/v1/jobs", json=site.spec(), headers={"Idempotency-Key": "nightly"})
        ids = {answer.json()["id"] for answer in [*answers, again] if answer.status_code == 202}
        assert ids == {path.name for path in (tmp_path / "root" / "jobs").iterdir()}
        assert len(ids) == 1
        assert people.anna.post("/v1/jobs", json=site.spec()).status_code == 429


def test_a_server_that_dies_while_it_accepts_keeps_no_place_for_long(
    redis_url: str, redis: Redis, tmp_path: Path, site: Site
) -> None:
    root = tmp_path / "root"
    key = f"{keys.RESERVATIONS}anna"
    with served(redis_url, root) as server, ExitStack() as clients:
        people = People(server, clients)
        token = people.anna.headers["Authorization"].removeprefix("Bearer ")
        accepted(people.operator.put("/v1/quotas/anna", json={"jobs": 1}))
    dying = ApiServer(
        root, redis_url, "--token", OPERATOR, insecure=False, env={"PARALLELRUN_FAILPOINTS": "quota.reserved=kill"}
    )
    with dying, client_of(dying, token) as anna:
        with pytest.raises(httpx.TransportError):
            anna.post("/v1/jobs", json=site.spec())
        assert dying.process is not None
        assert dying.process.wait(20) == -signal.SIGKILL
    assert not list(root.glob("jobs/*/job.json"))
    ((job_id, until),) = redis.hgetall(key).items()
    assert 0 < float(until) - Registry(redis).now() <= 120
    with served(redis_url, root) as server, client_of(server, token) as anna:
        assert "anna has 1 job that has not ended" in anna.post("/v1/jobs", json=site.spec()).json()["detail"]
        redis.hset(key, job_id, int(Registry(redis).now()))  # as if two minutes had passed
        accepted(anna.post("/v1/jobs", json=site.spec()))
        assert redis.hget(key, job_id) is None
        assert anna.post("/v1/jobs", json=site.spec()).status_code == 429


def test_what_begins_anew_counts_as_well(redis_url: str, redis: Redis, tmp_path: Path, site: Site) -> None:
    registry = Registry(redis)
    with served(redis_url, tmp_path / "root") as server, ExitStack() as clients:
        people = People(server, clients)
        schedule = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": site.spec()}
        accepted(people.anna.put("/v1/schedules/nightly", json=schedule))
        ended = accepted(people.anna.post("/v1/jobs", json=site.spec()))["id"]
        accepted(people.anna.post(f"/v1/jobs/{ended}:cancel"))
        master = Master(server.root, redis)
        master.conclude(ended, JobState.CANCELED)
        master.retire(ended)
        accepted(people.operator.put("/v1/quotas/anna", json={"jobs": 1}))
        running = accepted(people.anna.post("/v1/jobs", json=site.spec()))["id"]
        for way in (f"/v1/jobs/{ended}:resume", "/v1/schedules/nightly:trigger"):
            refused = people.anna.post(way)
            assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded"), way
        assert JobFolder(server.root, ended).generation() == 0
        assert registry.state(ended) is JobState.CANCELED
        accepted(people.operator.post("/v1/schedules/nightly:trigger"))  # an admin may
        accepted(people.anna.post(f"/v1/jobs/{running}:cancel"))


def test_a_reservation_ends_by_itself_and_an_earlier_reader_reads_again(redis: Redis) -> None:
    def wish(job_id: str) -> Reserving:
        return Reserving(owner="anna", job_id=job_id, most_jobs=1, most_submissions=None, now=60.0)

    lasting, short = Reservations(redis), Reservations(redis, lasts_s=0)
    assert short.reserve(wish("dies"), [], "") == (ReservationResult.RESERVED, 0)
    changes = lasting.changes("anna")
    assert lasting.reserve(wish("a"), [], changes) == (ReservationResult.RESERVED, 0)
    assert lasting.reserve(wish("b"), [], changes) == (ReservationResult.JOBS, 1)
    assert lasting.reserve(wish("a"), [], changes)[0] is ReservationResult.RESERVED, "it is the same job"
    lasting.confirm("anna", "a")
    assert lasting.reserve(wish("b"), [], changes)[0] is ReservationResult.CHANGED, (
        "it has not read that a is a job now"
    )
    assert lasting.reserve(wish("b"), ["a"], lasting.changes("anna")) == (ReservationResult.JOBS, 1)
    assert lasting.reserve(wish("b"), [], lasting.changes("anna"))[0] is ReservationResult.RESERVED
    lasting.release(wish("b"))
    assert lasting.reserve(wish("c"), [], lasting.changes("anna"))[0] is ReservationResult.RESERVED


def test_the_use_of_the_cluster_by_week_and_person(redis_url: str, redis: Redis, tmp_path: Path, site: Site) -> None:
    UsageStore(redis).add({"anna": Used(3600, 0)}, now=1_795_750_000 - 7 * 86_400)
    UsageStore(redis).add({"anna": Used(7200, 0), "=bert": Used(3600, 1800)}, now=1_795_750_000)
    flags = ("--visibility", "own", "--cost-per-slot-hour", "0.5", "--cost-per-gpu-hour", "4")
    with served(redis_url, tmp_path / "root", *flags) as server, ExitStack() as clients:
        people = People(server, clients)
        job_id = accepted(people.anna.post("/v1/jobs", json=site.spec()))["id"]
        folder = retention_of(tmp_path / "root")
        folder.mkdir(exist_ok=True)
        fact = JobFacts(job_id=job_id, unit=job_id, submitted=1.0, ended=1_795_750_000 - 7 * 86_400, bytes=3_000)
        (folder / "measured.json").write_bytes(msgspec.json.encode({"schema": 1, "jobs": [fact]}))
        rows = people.operator.get("/v1/usage.csv").text.splitlines()
        assert rows == [
            "week,owner,slot_hours,gpu_hours,cost,job_bytes,week_bytes",
            '2026-W48,"\'=bert",1.0,0.5,2.5,0,0',
            '2026-W48,"anna",2.0,0.0,1.0,3000,0',
            '2026-W47,"anna",1.0,0.0,0.5,,3000',
        ]
        assert {each["owner"] for each in accepted(people.anna.get("/v1/usage"))["items"]} == {"anna"}
        for name in ("anna", "bert", "everybody"):
            accepted(people.operator.put(f"/v1/quotas/{name}", json={"jobs": 5}))
        assert [each["name"] for each in accepted(people.anna.get("/v1/quotas"))["items"]] == ["anna", "everybody"]


def test_a_submission_over_a_quota_is_refused_in_words(
    redis_url: str, redis: Redis, tmp_path: Path, site: Site
) -> None:
    check_quotas(redis_url, redis, tmp_path, site)


def check_quotas(redis_url: str, redis: Redis, tmp_path: Path, site: Site, without: str = "") -> None:
    """Submit as much as the quotas allow, and more."""
    with served(redis_url, tmp_path / "root", without=without) as server, ExitStack() as clients:
        people = People(server, clients)
        accepted(people.operator.put("/v1/quotas/everybody", json={"jobs": 2}))
        accepted(people.operator.put("/v1/quotas/bert", json={"submissions_per_minute": 0}))
        assert people.anna.put("/v1/quotas/anna", json={"jobs": 99}).status_code == 403
        first, _ = (accepted(people.anna.post("/v1/jobs", json=site.spec()))["id"] for _ in range(2))
        refused = people.anna.post("/v1/jobs", json=site.spec())
        assert refused.status_code == 429
        assert refused.json()["code"] == "quota_exceeded"
        assert "Retry-After" not in refused.headers, "a client would wait, and say nothing"
        assert "anna has 2 jobs that have not ended, and may have 2" in refused.json()["detail"]
        assert "may submit 0 jobs in a minute" in people.bert.post("/v1/jobs", json=site.spec()).json()["detail"]
        for _ in range(3):
            accepted(people.operator.post("/v1/jobs", json=site.spec()))
        accepted(people.anna.post(f"/v1/jobs/{first}:cancel"))
        accepted(people.anna.post("/v1/jobs", json=site.spec()))
        folder = retention_of(tmp_path / "root")
        folder.mkdir(exist_ok=True)
        fact = JobFacts(job_id=first, unit=first, submitted=1.0, ended=2.0, bytes=3_000_000_000)
        (folder / "measured.json").write_bytes(msgspec.json.encode({"schema": 1, "jobs": [fact]}))
        accepted(people.operator.put("/v1/quotas/anna", json={"job_bytes": 2_000_000_000, "slots": 4}))
        refused = people.anna.post("/v1/jobs", json=site.spec())
        assert refused.json()["detail"].startswith(
            "The jobs of anna take 3,000,000,000 bytes, and may take 2,000,000,000: delete some"
        )
        assert SlotQuotas(redis).all() == {"anna": (4, None)}
        assert people.operator.delete("/v1/quotas/anna").status_code == 204
        assert people.operator.delete("/v1/quotas/everybody").status_code == 204
        accepted(people.anna.post("/v1/jobs", json=site.spec()))


def test_a_limit_that_is_set_keeps_the_others(redis_url: str, redis: Redis, tmp_path: Path, site: Site) -> None:
    with served(redis_url, tmp_path / "root") as server, ExitStack() as clients:
        people = People(server, clients)
        admin = clients.enter_context(Client(f"http://127.0.0.1:{server.port}", OPERATOR))
        admin.quotas.set("anna", jobs=5)
        with ThreadPoolExecutor() as threads:  # what another admin sets at the same moment stays, too
            limits: list[dict[str, Any]] = [{"slots": 2}, {"nodes": 3}, {"job_bytes": 4}, {"submissions_per_minute": 6}]
            list(threads.map(lambda limit: admin.quotas.set("anna", **limit), limits))
        assert admin.quotas.list() == [
            Quota(name="anna", jobs=5, submissions_per_minute=6, slots=2, nodes=3, job_bytes=4)
        ]
        assert SlotQuotas(redis).all() == {"anna": (2, 3)}
        assert admin.quotas.set("anna", slots=None).slots is None
        assert people.anna.patch("/v1/quotas/anna", json={"jobs": 99}).status_code == 403
        accepted(people.operator.put("/v1/quotas/anna", json={"jobs": 1}))  # the whole quota
        assert admin.quotas.list() == [Quota(name="anna", jobs=1)]
