"""Looking at jobs: one, many, changed or not, and cancelling them."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, Master

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

FAILED = JobFailure(
    code="error_threshold", summary="3 items failed", first_cause="ValueError: canary-7731", sample_mini_batches=[1]
)


class TestOneJob:
    def test_while_it_runs(self, api: httpx.Client, job_id: str, master: Master) -> None:
        master.begin(job_id)
        master.progress(job_id, Progress(scheduled=10, listing_done=True, done=4, rows=40))

        job = api.get(f"/v1/jobs/{job_id}").json()

        assert (job["state"], job["version"]) == ("processing", 2)
        assert (job["progress"]["scheduled"], job["progress"]["done"], job["output"]) == (10, 4, None)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", job["started"])

    def test_when_it_has_completed(self, api: httpx.Client, job_id: str, master: Master, root: Path) -> None:
        master.begin(job_id)
        master.end(job_id, JobState.COMPLETED, rows=b"1\n")

        job = api.get(f"/v1/jobs/{job_id}").json()

        assert (job["state"], job["progress"]["rows"]) == ("completed", 3)
        assert job["output"] == {
            "path": str(root / "jobs" / job_id / "outputs" / "parallel_run_step.txt"),
            "bytes": 2,
            "sha256": "0" * 64,
            "order": "sorted",
        }
        assert job["ended"] is not None

    def test_when_it_has_failed(self, api: httpx.Client, site: Site, master: Master) -> None:
        spec = site.spec(environment_variables={"KEY": "canary-7731"})
        job_id = api.post("/v1/jobs", json=spec).json()["id"]
        master.begin(job_id)
        master.end(job_id, JobState.FAILED, FAILED)

        failure = api.get(f"/v1/jobs/{job_id}").json()["failure"]

        assert (failure["code"], failure["sample_mini_batches"]) == ("error_threshold", [1])
        assert failure["first_cause"] == "ValueError: ***"

    def test_a_finished_one_survives_the_loss_of_redis(
        self, api: httpx.Client, job_id: str, master: Master, redis: Redis
    ) -> None:
        master.begin(job_id)
        master.end(job_id, JobState.FAILED, FAILED)
        redis.flushall()

        job = api.get(f"/v1/jobs/{job_id}").json()

        assert (job["state"], job["failure"]["summary"]) == ("failed", "3 items failed")

    def test_an_unfinished_one_that_redis_forgot_waits_again(
        self, api: httpx.Client, job_id: str, redis: Redis
    ) -> None:
        redis.flushall()

        assert api.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"

    @pytest.mark.parametrize("wrong", ["job_00000000000000000000", "x", "..", "%2e%2e", "job_1", "a" * 300])
    def test_there_is_none(self, wrong: str, api: httpx.Client) -> None:
        answer = api.get(f"/v1/jobs/{wrong}")

        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


class TestChanges:
    def test_an_etag_saves_the_body(self, api: httpx.Client, job_id: str, master: Master) -> None:
        tag = api.get(f"/v1/jobs/{job_id}").headers["etag"]

        same = api.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": f'"x", W/{tag}'})
        any_at_all = api.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": "*"})
        master.begin(job_id)
        other = api.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": tag})

        assert (same.status_code, same.content) == (304, b"")
        assert any_at_all.status_code == 304
        assert (other.status_code, other.json()["state"]) == (200, "processing")
        assert other.headers["etag"] != tag

    def test_a_long_poll_ends_with_the_next_change(
        self, api: httpx.Client, job_id: str, master: Master, shared_api: ApiServer
    ) -> None:
        answers: list[httpx.Response] = []
        with shared_api.client() as waiting:
            poll = threading.Thread(target=lambda: answers.append(waiting.get(f"/v1/jobs/{job_id}?wait=20&since=0")))
            poll.start()
            wait_until_watched(api)
            began = time.monotonic()
            master.begin(job_id)
            poll.join()

        assert answers[0].json()["version"] > 0
        assert time.monotonic() - began < 5

    def test_a_long_poll_of_what_is_old_news_already(self, api: httpx.Client, job_id: str, master: Master) -> None:
        master.begin(job_id)
        began = time.monotonic()

        job = api.get(f"/v1/jobs/{job_id}?wait=20&since=0").json()

        assert job["version"] == 1
        assert time.monotonic() - began < 5

    def test_a_long_poll_ends_in_time(self, api: httpx.Client, job_id: str) -> None:
        began = time.monotonic()

        answer = api.get(f"/v1/jobs/{job_id}?wait=0.3&since=0")

        assert answer.status_code == 200
        assert 0.3 <= time.monotonic() - began < 5

    def test_a_long_poll_of_a_finished_job(self, api: httpx.Client, job_id: str, master: Master) -> None:
        master.begin(job_id)
        master.end(job_id, JobState.COMPLETED)

        assert api.get(f"/v1/jobs/{job_id}?wait=60&since=99999").json()["state"] == "completed"

    def test_a_long_poll_waits_for_the_result_to_be_recorded(
        self, api: httpx.Client, job_id: str, master: Master, redis: Redis, shared_api: ApiServer
    ) -> None:
        """A state is terminal a moment before the result is there, and nobody wants to see one without the other."""
        master.begin(job_id)
        Registry(redis).move(job_id, JobState.FAILED, FAILED)
        answers: list[httpx.Response] = []
        with shared_api.client() as waiting:
            poll = threading.Thread(target=lambda: answers.append(waiting.get(f"/v1/jobs/{job_id}?wait=20&since=2")))
            poll.start()
            wait_until_watched(api)
            master.conclude(job_id, JobState.FAILED, FAILED)
            poll.join()

        assert answers[0].json()["ended"] is not None

    @pytest.mark.parametrize("query", ["wait=soon", "wait=nan", "wait=1&since=x"])
    def test_nonsense(self, query: str, api: httpx.Client, job_id: str) -> None:
        answer = api.get(f"/v1/jobs/{job_id}?{query}")

        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("/query/")


def wait_until_watched(api: httpx.Client) -> None:
    """Return once a client watches a job."""
    deadline = time.monotonic() + 10
    while "parallelrun_event_streams 0.0" in api.get("/metrics").text:
        assert time.monotonic() < deadline


class TestList:
    def test_pages_newest_first_stable_under_new_jobs(
        self, redis_url: str, redis: Redis, site: Site, tmp_path: Path
    ) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            ids = [api.post("/v1/jobs", json=site.spec(name=f"n{n}")).json()["id"] for n in range(5)]
            first = api.get("/v1/jobs?limit=2").json()
            api.post("/v1/jobs", json=site.spec(name="later"))
            second = api.get(f"/v1/jobs?limit=2&page_token={first['next_page_token']}").json()
            third = api.get(f"/v1/jobs?limit=2&page_token={second['next_page_token']}").json()

            # Two of one millisecond come in any order.
            assert [job["id"] for page in (first, second, third) for job in page["items"]] == sorted(ids, reverse=True)
            assert third["next_page_token"] is None
            assert len(api.get("/v1/jobs?limit=100000").json()["items"]) == 6
            assert len(api.get("/v1/jobs?limit=-5").json()["items"]) == 1

            Registry(redis).move(ids[1], JobState.CANCELED)
            found = api.get("/v1/jobs?status=canceled").json()
            assert [job["id"] for job in found["items"]] == [ids[1]]

    def test_what_can_not_be_read_holds_up_no_other(self, redis_url: str, site: Site, tmp_path: Path) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            ids = [api.post("/v1/jobs", json=site.spec()).json()["id"] for _ in range(3)]
            for job_id, text in zip(ids, ("{", '{"schema": 99}'), strict=False):
                (tmp_path / "root" / "jobs" / job_id / "job.json").write_text(text)

            assert [job["id"] for job in api.get("/v1/jobs").json()["items"]] == ids[2:]
            answers = [api.get(f"/v1/jobs/{job_id}") for job_id in ids]
            codes = [answer.json().get("code") for answer in answers]
            assert codes == ["corrupt_log", "newer_schema", None]
            assert [answer.status_code for answer in answers] == [500, 409, 200]

    def test_none(self, redis_url: str, redis: Redis, tmp_path: Path) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            assert api.get("/v1/jobs").json() == {"items": [], "next_page_token": None}

    @pytest.mark.parametrize(
        "query", ["page_token=x", "page_token=" + "A" * 300, "limit=x", "limit=" + "9" * 5000, "status=odd"]
    )
    def test_nonsense(self, query: str, api: httpx.Client) -> None:
        answer = api.get(f"/v1/jobs?{query}")

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


class TestCancel:
    def test_twice(self, api: httpx.Client, job_id: str, redis: Redis) -> None:
        first, second = api.post(f"/v1/jobs/{job_id}:cancel"), api.post(f"/v1/jobs/{job_id}:cancel")

        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json()["state"] == "canceled"
        assert Registry(redis).state(job_id) == JobState.CANCELED

    @pytest.mark.parametrize("state", [JobState.FINALIZING, JobState.COMPLETED, JobState.FAILED])
    def test_too_late(self, state: JobState, api: httpx.Client, job_id: str, master: Master, redis: Redis) -> None:
        master.begin(job_id)
        if state == JobState.FINALIZING:
            Registry(redis).move(job_id, state)
        else:
            master.end(job_id, state)

        answer = api.post(f"/v1/jobs/{job_id}:cancel")

        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")

    def test_one_that_redis_forgot(self, api: httpx.Client, job_id: str, redis: Redis) -> None:
        redis.flushall()

        answer = api.post(f"/v1/jobs/{job_id}:cancel")

        assert (answer.status_code, answer.json()["state"]) == (202, "canceled")
        assert Registry(redis).active_jobs() == [job_id]

    def test_one_that_is_over_and_that_redis_forgot(
        self, api: httpx.Client, job_id: str, master: Master, redis: Redis
    ) -> None:
        master.begin(job_id)
        master.end(job_id, JobState.COMPLETED)
        redis.flushall()

        assert api.post(f"/v1/jobs/{job_id}:cancel").status_code == 409
        assert Registry(redis).active_jobs() == []

    def test_there_is_none(self, api: httpx.Client) -> None:
        assert api.post("/v1/jobs/job_00000000000000000000:cancel").status_code == 404
