"""`parallelrun job stream` against a server that answers as the test says."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import (
    CANCELED,
    COMPLETED,
    EVENTS,
    FAILED,
    HANG_UP,
    JOB,
    Answer,
    FakeApi,
    Request,
)

pytestmark = pytest.mark.usefixtures("_at_the_api")


@pytest.mark.parametrize("ended, code", [(COMPLETED, 0), (FAILED, 3), (CANCELED, 4)])
def test_stream_survives_disconnects_and_exits_as_the_job_did(
    api: FakeApi, capsys: pytest.CaptureFixture[str], ended: dict[str, object], code: int
) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), Answer.of(ended))
    error = {"category": "RUN_EXCEPTION", "message": "bad\x1b]0;row", "count": 1}
    api.on(
        "GET", EVENTS,
        Answer.events(("1-0", "state", {"state": "processing"}), ("2-0", "error", error)),
        HANG_UP,
        Answer.events(("3-0", "progress", {"scheduled": 9, "done": 4}), ("", "end", ended)),
    )  # fmt: skip

    assert main(["job", "stream", "job_1"]) == code

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "connection lost" not in shown.err, "the next connection was answered at once"
    assert "RUN_EXCEPTION: bad\\x1b]0;row" in shown.err
    assert str(ended["state"]) in shown.err
    assert "\x1b" not in shown.err


def test_stream_says_that_the_connection_is_lost_once_it_stays_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parallelrun.resources.watch._REPORTED_AFTER_S", 0.5)
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), Answer.of(COMPLETED))
    events = Answer.events(("3-0", "progress", {"scheduled": 9, "done": 4}), ("", "end", COMPLETED))
    api.on("GET", EVENTS, HANG_UP, HANG_UP, HANG_UP, HANG_UP, HANG_UP, HANG_UP, events)

    assert main(["job", "stream", "job_1"]) == 0

    shown = capsys.readouterr().err
    assert shown.count("connection lost") == 1
    assert shown.count("connected again") == 1


def test_stream_does_not_take_a_server_that_is_busy_for_one_that_is_away(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parallelrun.resources.watch._REPORTED_AFTER_S", 0.0)
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), Answer.of(COMPLETED))
    busy = Answer.of({"code": "too_many_streams", "detail": "1,000 clients are watching already."}, 429)
    api.on("GET", EVENTS, busy, busy, Answer.events(("", "end", COMPLETED)))

    assert main(["job", "stream", "job_1"]) == 0
    assert "connection lost" not in capsys.readouterr().err


def test_stream_shows_what_a_job_waits_for_and_what_to_do(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB), Answer.of(COMPLETED))
    waiting = {"condition": "nodes", "text": "no node is there", "advice": "start one: `parallelrun-agent`"}
    api.on("GET", EVENTS, Answer.events(("", "snapshot", JOB), ("", "waiting", waiting), ("", "end", COMPLETED)))

    assert main(["job", "stream", "job_1"]) == 0
    assert "no node is there: start one: `parallelrun-agent`" in capsys.readouterr().err


def test_a_failure_names_the_log_to_open(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(FAILED))
    api.on("GET", EVENTS, Answer.events(("", "end", FAILED)))

    main(["job", "stream", "job_1"])

    lines = capsys.readouterr().err.splitlines()
    assert "failed: 2 items have failed." in lines
    assert "first cause: x\\x1b[2J" in lines
    assert "log: parallelrun job logs job_1 user/error/a.txt" in lines


def test_what_failed_in_a_job_that_completed_is_said_first(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"scheduled": 10, "listing_done": True, "done": 3, "failed": 7, "items_scheduled": 100, "items_failed": 70}
    errors = [{"category": "RUN_EXCEPTION", "message": "ValueError: x", "count": 7, "exception": "ValueError"}]
    errors[0]["place"] = "score.py:17"
    ended = {**COMPLETED, "started": JOB["submitted"], "progress": counts, "errors": errors}
    api.on("GET", "/v1/jobs/job_1", Answer.of(ended))
    api.on("GET", EVENTS, Answer.events(("", "end", ended)))

    assert main(["job", "stream", "job_1"]) == 0

    assert capsys.readouterr().err.splitlines()[:2] == [
        "completed, but 70 of 100 items failed (70 %): ValueError in score.py:17",
        "in 4.0 s: 10/10 mini-batches (7 failed), 0 rows",
    ]
    assert main(["job", "stream", "job_1", "--strict"]) == 3


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_stream_leaves_the_job_alone(api: FakeApi, number: int, code: int) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB))
    connected = threading.Event()
    over = threading.Event()

    def wait(_: Request) -> Answer:
        connected.set()
        over.wait(30)
        return HANG_UP

    api.on("GET", EVENTS, wait)
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "parallelrun", "job", "stream", "job_1"],
        stderr=subprocess.PIPE, env=dict(os.environ), text=True,
    )  # fmt: skip
    assert connected.wait(30)
    command.send_signal(number)
    _, printed = command.communicate(timeout=30)
    over.set()

    assert command.returncode == code
    assert "The job continues." in printed
    assert "parallelrun job cancel job_1" in printed
    assert not any(request.path.endswith(":cancel") for request in api.requests)


def test_outputs_of_a_pipeline_that_no_step_has_written_are_told_as_such(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = [{"name": "rows", "path": "/made/rows"}, {"name": "unused", "path": None}]
    api.on("GET", "/v1/jobs/job_1", Answer.of({**COMPLETED, "type": "pipeline", "steps": [], "outputs": outputs}))
    assert main(["job", "stream", "job_1"]) == 0
    told = capsys.readouterr().err
    assert "output rows: /made/rows\noutput unused: no step has written it\n" in told
