"""Requests: what is repeated and what isn't, errors, pages, long polls, submitting."""

import json
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parallelrun import (
    Client,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    JobCanceled,
    JobFailed,
    NotFound,
    RetryPolicy,
    TimedOut,
    Unauthorized,
    Unavailable,
)
from parallelrun.embedded.cluster import reserve_port
from parallelrun.http import retry
from parallelrun.http.transport import Transport
from parallelrun.resources import jobs
from parallelrun.resources.jobs import Jobs
from tests.integration.client.fake_api import COMPLETED, HANG_UP, JOB, Answer, FakeApi, Request

BUSY = Answer.of({"title": "Not now.", "detail": "Redis can't be used right now.", "code": "unavailable"}, 503)
QUICK = RetryPolicy(attempts=3, first_pause_s=0.001)


@pytest.fixture
def client(api: FakeApi) -> Iterator[Client]:
    with Client(api.url, "canary-token", retry=QUICK) as client:
        yield client


def test_a_job_comes_as_an_object(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of({**JOB, "of_a_later_version": 1, "progress": {"done": 2}}))

    job = client.jobs.get("job_1")

    assert (job.id, job.state, job.version, job.progress.done, job.has_ended) == ("job_1", "processing", 3, 2, False)
    assert api.requests[0].headers["Authorization"] == "Bearer canary-token"


def test_reads_are_repeated_until_the_server_is_back(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", HANG_UP, BUSY, Answer.of(JOB))

    assert client.jobs.get("job_1").id == "job_1"
    assert len(api.requests) == 3


CROWD = Answer.of({"detail": "Try again soon.", "code": "too_many_reads"}, 429, **{"Retry-After": "2"})


def test_a_server_that_is_busy_is_asked_again_for_longer_than_one_that_is_away(api: FakeApi) -> None:
    pauses: list[float] = []
    transport = Transport(api.url, retry=QUICK, sleep=pauses.append)
    api.on("GET", "/v1/jobs/job_1/outputs", *[CROWD] * 20, Answer.of({"items": []}))

    assert transport.request("GET", "/v1/jobs/job_1/outputs", idempotent=True) == {"items": []}
    transport.close()
    assert len(pauses) == 20
    assert all(pause >= 2.0 for pause in pauses)
    assert len(set(pauses)) > 1, "clients don't all come back at the same moment"


def test_who_is_over_a_quota_is_told_at_once(api: FakeApi) -> None:
    pauses: list[float] = []
    transport = Transport(api.url, retry=QUICK, sleep=pauses.append)
    api.on("POST", "/v1/jobs", Answer.of({"detail": "anna may have 2 jobs.", "code": "quota_exceeded"}, 429))

    with pytest.raises(Unavailable, match="anna may have 2 jobs"):
        transport.request("POST", "/v1/jobs", idempotent=True)
    transport.close()
    assert pauses == []


def test_a_server_that_stays_busy_is_given_up(api: FakeApi) -> None:
    pauses: list[float] = []
    transport = Transport(api.url, retry=RetryPolicy(busy_s=60), sleep=pauses.append)
    api.on("GET", "/v1/jobs/job_1/outputs", CROWD)

    with pytest.raises(Unavailable, match="Try again soon"):
        transport.request("GET", "/v1/jobs/job_1/outputs", idempotent=True)
    transport.close()
    assert 60 <= sum(pauses) < 100


def test_in_the_end_the_servers_own_words_are_raised(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", BUSY)

    with pytest.raises(Unavailable, match="Redis can't be used") as caught:
        client.jobs.get("job_1")

    assert caught.value.code == "unavailable"
    assert len(api.requests) == QUICK.attempts


@pytest.mark.parametrize(
    "retry_after, expected",
    [("7", [7.0]), ("3600", []), ("", [pytest.approx(0.00075, rel=0.4)])],
)
def test_the_server_says_when_to_come_back(api: FakeApi, retry_after: str, expected: list[Any]) -> None:
    pauses: list[float] = []
    headers = {"Retry-After": retry_after} if retry_after else {}
    api.on("GET", "/x", Answer(b"{}", 503, headers), Answer.of({}))
    transport = Transport(api.url, retry=QUICK, sleep=pauses.append)

    try:
        transport.request("GET", "/x", idempotent=True)
    except Unavailable:
        assert retry_after == "3600"  # an hour is more than a user wants to wait

    assert pauses == expected
    transport.close()


def test_what_is_not_idempotent_is_sent_once(api: FakeApi) -> None:
    api.on("POST", "/x", HANG_UP, Answer.of({}))
    transport = Transport(api.url, retry=QUICK)

    with pytest.raises(ConnectionFailed):
        transport.request("POST", "/x", idempotent=False)

    assert len(api.requests) == 1
    transport.close()


@pytest.mark.parametrize("status, kind", [(401, Unauthorized), (404, NotFound), (409, Conflict), (422, InvalidRequest)])
def test_refusals_are_not_repeated(api: FakeApi, client: Client, status: int, kind: type[Exception]) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of({"detail": "no", "code": "c"}, status))

    with pytest.raises(kind, match="no"):
        client.jobs.get("job_1")

    assert len(api.requests) == 1


def test_a_server_that_is_not_there_is_reported_as_unreachable() -> None:
    with reserve_port(0) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with Client(url, retry=QUICK) as client, pytest.raises(ConnectionFailed, match=url):
            client.jobs.get("job_1")


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8080", "ftp://x", "http://", "http://[::1", "http://x:port", "http://x:99999", "http://" + 64 * "x"],
)
def test_a_url_has_to_be_one(url: str) -> None:
    with pytest.raises(ConnectionFailed, match="is not the URL"):
        Client(url)


def test_a_token_from_a_file_is_taken_without_its_line_break(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB))
    with Client(api.url, "canary\r\n") as client:
        client.jobs.get("job_1")
    assert api.requests[0].headers["Authorization"] == "Bearer canary"


@pytest.mark.parametrize("token", ["canary\ncanary", "canary\0", "canáry"])
def test_an_invalid_token_is_not_shown(api: FakeApi, token: str) -> None:
    with pytest.raises(ConnectionFailed, match="The token has characters") as caught:
        Client(api.url, token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>", b'{"id": 3}', b"[]"])
def test_an_answer_of_something_else_is_an_error_of_ours(api: FakeApi, client: Client, body: bytes) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer(body))

    with pytest.raises(ConnectionFailed):
        client.jobs.get("job_1")


def test_ids_can_not_lead_elsewhere(api: FakeApi, client: Client) -> None:
    with pytest.raises(NotFound):
        client.jobs.get("../nodes?x=")

    assert api.requests[0].path == "/v1/jobs/../nodes?x="  # decoded once: it was one quoted part


def test_lists_are_fetched_page_by_page_while_they_are_used(api: FakeApi, client: Client) -> None:
    api.on(
        "GET", "/v1/jobs",
        Answer.of({"items": [{**JOB, "id": "a"}, {**JOB, "id": "b"}], "next_page_token": "two"}),
        Answer.of({"items": [{**JOB, "id": "c"}], "next_page_token": None}),
    )  # fmt: skip

    jobs = client.jobs.list(status="failed")

    assert next(jobs).id == "a"
    assert len(api.requests) == 1
    assert [job.id for job in jobs] == ["b", "c"]
    assert [request.query.get("page_token") for request in api.requests] == [None, "two"]
    assert all(request.query["status"] == "failed" for request in api.requests)


def test_a_limit_ends_a_list(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs", Answer.of({"items": [JOB] * 3, "next_page_token": "more"}))

    assert len(list(client.jobs.list(limit=2))) == 2
    assert api.requests[0].query["limit"] == "2"


def test_mini_batches_and_nodes_come_as_objects(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1/mini-batches", Answer.of({"items": [{"id": 4, "status": "ready", "rows": None}]}))
    api.on("GET", "/v1/nodes", Answer.of({"items": [{"node": "node1", "state": "lost", "slots": 2}]}))

    assert [each.id for each in client.jobs.mini_batches("job_1", status="ready")] == [4]
    assert [each.is_alive for each in client.nodes.list()] == [False]


def test_readiness_is_asked_once_and_never_raises(api: FakeApi, client: Client) -> None:
    api.on("GET", "/readyz", Answer.of({}, 503), Answer.of({}))

    assert not client.is_ready()
    assert client.is_ready()


def job_folder(folder: Path) -> Path:
    (folder / "src").mkdir()
    (folder / "src" / "count.py").write_text("def run(mini_batch): ...")
    (folder / "data").mkdir()
    (folder / "job.yml").write_text("code: src\nentry_script: count.py\ninputs: data\n")
    return folder / "job.yml"


def test_code_is_sent_along_and_again_in_full_when_the_answer_was_lost(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    in_flight = Answer.of({"code": "idempotency_key_in_flight"}, 409, **{"Retry-After": "0"})
    api.on("POST", "/v1/jobs", HANG_UP, in_flight, Answer.of(JOB, 202))

    job = client.jobs.create(job_folder(tmp_path))

    assert job.id == "job_1"
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1
    for request in api.requests:
        spec, code = parts_of(request)
        assert json.loads(spec)["inputs"]["data"]["path"] == str(tmp_path / "data")
        assert json.loads(spec)["code"] == ""
        assert zipfile.ZipFile(BytesIO(code)).namelist() == ["count.py"]


def parts_of(request: Request) -> list[bytes]:
    boundary = b"--" + request.headers["Content-Type"].partition("boundary=")[2].encode()
    return [part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in request.body.split(boundary)[1:-1]]


def test_code_may_be_named_by_its_path(api: FakeApi, client: Client, tmp_path: Path) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))

    client.jobs.create(job_folder(tmp_path), idempotency_key="mine", upload_code=False)

    assert json.loads(api.requests[0].body)["code"] == str(tmp_path / "src")
    assert api.requests[0].headers["Idempotency-Key"] == "mine"


@pytest.mark.parametrize(
    "around, given, sent",
    [
        ("", None, None),
        ("00-of-the-shell", None, "00-of-the-shell"),
        ("00-of-the-shell", "00-mine", "00-mine"),
        ("00-of-the-shell", "", None),
        ("no\nheader", None, None),
    ],
)
def test_a_submission_names_the_trace_that_it_is_a_part_of(
    api: FakeApi, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *,
    around: str, given: str | None, sent: str | None,
) -> None:  # fmt: skip
    monkeypatch.setenv("TRACEPARENT", around)
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))

    client.jobs.create(job_folder(tmp_path), traceparent=given)

    assert api.requests[0].headers.get("traceparent") == sent


def test_two_submissions_are_two_jobs(api: FakeApi, client: Client, tmp_path: Path) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))
    file = job_folder(tmp_path)

    for _ in range(2):
        client.jobs.create(file)

    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 2


def test_waiting_uses_long_polls_and_reports_progress(api: FakeApi, client: Client) -> None:
    api.on(
        "GET", "/v1/jobs/job_1",
        Answer.of(JOB), Answer.of(JOB), Answer.of({**JOB, "version": 4}), BUSY, Answer.of(COMPLETED),
    )  # fmt: skip
    seen: list[int] = []

    job = client.jobs.wait("job_1", on_progress=lambda job: seen.append(job.version))

    assert job.state == "completed"
    assert seen == [3, 4, 9]
    assert [request.query.get("since") for request in api.requests] == [None, "3", "3", "4", "4"]


def test_waiting_for_the_end_alone_is_not_answered_for_less(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), Answer.of({**JOB, "version": 4}), Answer.of(COMPLETED))

    assert client.jobs.wait("job_1").state == "completed"

    first, *others = [request.query.get("since") for request in api.requests]
    assert first is None
    assert len(others) == 2
    assert all(int(since or 0) > 10**12 for since in others), "no job ever has such a version"


@pytest.mark.parametrize("state, kind", [("failed", JobFailed), ("canceled", JobCanceled)])
def test_waiting_raises_for_a_job_without_a_result(
    api: FakeApi, client: Client, state: str, kind: type[JobFailed] | type[JobCanceled]
) -> None:
    api.on(
        "GET", "/v1/jobs/job_1", Answer.of({**COMPLETED, "state": state, "failure": {"code": "X", "summary": "broken"}})
    )

    with pytest.raises(kind) as caught:
        client.jobs.wait("job_1")

    error = caught.value
    assert isinstance(error, kind)
    assert error.job.state == state
    assert client.jobs.wait("job_1", raise_on_failure=False).state == state


def test_waiting_is_over_when_the_end_is_recorded(api: FakeApi, client: Client) -> None:
    canceled = {**JOB, "state": "canceled"}
    api.on("GET", "/v1/jobs/job_1", Answer.of(canceled), Answer.of(canceled), Answer.of({**canceled, "ended": "now"}))

    assert client.jobs.wait("job_1", raise_on_failure=False).ended == "now"


@pytest.fixture
def patient(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Jobs, Callable[[], float]]]:
    """A waiting client with a clock that only its own pauses advance; and that clock."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(retry, "time", clock)
    monkeypatch.setattr(jobs, "time", clock)
    transport = Transport(api.url, retry=QUICK, sleep=sleep)
    yield Jobs(transport, sleep=sleep), lambda: now
    transport.close()


@pytest.mark.parametrize("away", [HANG_UP, BUSY])
def test_waiting_outlasts_a_server_that_stays_away_for_a_while(
    api: FakeApi, patient: tuple[Jobs, Callable[[], float]], away: Answer
) -> None:
    waiting, clock = patient
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), lambda _: away if clock() < 100 else Answer.of(COMPLETED))

    assert waiting.wait("job_1").state == "completed"


def test_a_server_that_has_never_answered_is_not_waited_for(
    api: FakeApi, patient: tuple[Jobs, Callable[[], float]]
) -> None:
    """The URL may be mistyped."""
    waiting, clock = patient
    api.on("GET", "/v1/jobs/job_1", HANG_UP)
    began = clock()
    with pytest.raises(ConnectionFailed, match="No answer from"):
        waiting.wait("job_1")
    assert clock() - began < 30


def test_waiting_has_its_limits_while_the_server_is_away(
    api: FakeApi, patient: tuple[Jobs, Callable[[], float]]
) -> None:
    waiting, clock = patient
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), HANG_UP)
    began = clock()
    with pytest.raises(TimedOut, match="still processing"):
        waiting.wait("job_1", timeout_s=30)
    assert 29.9 < clock() - began < 31


def test_waiting_without_time_still_asks_once(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))

    assert client.jobs.wait("job_1", timeout_s=0).state == "completed"


def test_waiting_gives_up_a_server_that_stays_away(api: FakeApi, patient: tuple[Jobs, Callable[[], float]]) -> None:
    waiting, clock = patient
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), BUSY)

    with pytest.raises(ConnectionFailed, match="Gave up after 120 s"):
        waiting.wait("job_1")
    assert 120 < clock() < 140

    api.on("GET", "/v1/jobs/job_2", Answer.of(JOB), HANG_UP)
    began = clock()
    with pytest.raises(TimedOut):
        waiting.wait("job_2", timeout_s=30)
    assert 29.9 < clock() - began < 31


def test_waiting_has_a_limit(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB))

    with pytest.raises(TimedOut, match="still processing"):
        client.jobs.wait("job_1", timeout_s=0.05)


def test_a_cancel_whose_answer_was_lost_is_sent_again(api: FakeApi, client: Client) -> None:
    api.on("POST", "/v1/jobs/job_1:cancel", HANG_UP, Answer.of({**JOB, "state": "canceled"}, 202))

    assert client.jobs.cancel("job_1").state == "canceled"


def test_logs_are_listed_and_read(api: FakeApi, client: Client) -> None:
    api.on(
        "GET",
        "/v1/jobs/job_1/logs",
        Answer.of({"items": [{"path": "user/a b.txt", "bytes": 3, "modified": "2026-01-02T03:04:05.000Z"}]}),
    )
    api.on("GET", "/v1/jobs/job_1/logs/user/a b.txt", Answer(b"abc"))

    assert [log.path for log in client.logs.list("job_1")] == ["user/a b.txt"]
    assert b"".join(client.logs.read("job_1", "user/a b.txt", tail=2)) == b"abc"
    assert api.requests[-1].query == {"tail": "2"}


def test_a_log_that_breaks_off_is_an_error(api: FakeApi, client: Client) -> None:
    api.on("GET", "/v1/jobs/job_1/logs/a", Answer(b"abc", cut=True))

    with pytest.raises(ConnectionFailed):
        list(client.logs.read("job_1", "a"))
