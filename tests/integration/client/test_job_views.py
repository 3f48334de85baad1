"""`parallelrun job top` and `job open` against a server."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import COMPLETED, JOB, Answer, FakeApi, Request

pytestmark = pytest.mark.usefixtures("_at_the_api")


@pytest.fixture(autouse=True)
def _server(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    api.on(
        "GET", "/v1/jobs/job_1", Answer.of({**COMPLETED, "progress": {"scheduled": 4, "done": 4, "listing_done": True}})
    )
    api.on("GET", "/v1/nodes", Answer.of({"items": [{"node": "n1", "state": "ready", "jobs": ["job_1"]},
                                                    {"node": "n2", "state": "ready", "jobs": []}]}))  # fmt: skip


def test_without_a_terminal_top_prints_the_job_once(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/jobs/job_1/throughput", Answer.of({"bucket_s": 1.0, "mini_batches": [4], "items": [8]}))
    api.on("GET", "/v1/jobs/job_1/errors", Answer.of({"items": [{"category": "OOM_KILLED", "count": 2}], "count": 2}))

    assert main(["job", "top", "job_1"]) == 0

    shown = capsys.readouterr().out
    assert "4/4 mini-batches" in shown
    assert "OOM_KILLED" in shown
    assert "n2" not in shown
    assert main(["job", "top", "job_1", "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [node["node"] for node in data["nodes"]] == ["n1"]
    assert data["errors"]["count"] == 2


def test_top_takes_the_newest_job_that_runs(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    ended = {**COMPLETED, "id": "job_2"}
    api.on("GET", "/v1/jobs", Answer.of({"items": [ended, JOB]}))
    assert main(["job", "top", "-o", "name"]) == 0
    assert capsys.readouterr().out == "job_1\n"


def test_top_finds_a_job_that_runs_behind_many_that_have_ended(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(request: Request) -> Answer:
        of_state = [{**JOB, "state": "finalizing"}] if request.query.get("status") == "finalizing" else []
        return Answer.of({"items": of_state if "status" in request.query else [{**COMPLETED, "id": "job_2"}] * 50})

    api.on("GET", "/v1/jobs", listed)
    assert main(["job", "top", "-o", "name"]) == 0
    assert capsys.readouterr().out == "job_1\n"


def test_a_server_of_an_earlier_release_shows_what_it_knows(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "top", "job_1"]) == 0
    assert "4/4 mini-batches" in capsys.readouterr().out


def test_without_a_browser_the_address_is_printed_with_one_that_signs_in(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.on("POST", "/v1/session:code", Answer.of({"code": "c/1", "link": "/#code=c"}))

    assert main(["job", "open", "job_1"]) == 0

    shown = capsys.readouterr()
    assert shown.out == f"{api.url}/jobs/job_1\n"
    assert f"{api.url}/jobs/job_1#code=c%2F1" in shown.err
    assert "canary" not in shown.out + shown.err


def test_a_browser_is_told_the_address_that_signs_in(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", str(browser))
    api.on("POST", "/v1/session:code", Answer.of({"code": "c1", "link": "/#code=c1"}))

    assert main(["job", "open", "job_1"]) == 0

    deadline = time.monotonic() + 20
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert opened.read_text() == f"{api.url}/jobs/job_1#code=c1\n"
    assert "c1" not in capsys.readouterr().out.partition("jobs/")[0]


def test_only_the_address_is_printed_on_request(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "open", "job_1", "--print"]) == 0
    assert capsys.readouterr().out == f"{api.url}/jobs/job_1\n"
    assert not api.asked("/v1/session:code")


def test_on_a_terminal_top_redraws_until_the_job_has_ended(api: FakeApi) -> None:
    """In a terminal of its own: the screen that was there before comes back, and how the job ended is said."""
    import pty
    import subprocess
    import sys

    running = {**JOB, "id": "job_3", "progress": {"scheduled": 4, "done": 1, "listing_done": True}}
    api.on("GET", "/v1/jobs/job_3", Answer.of(running), Answer.of(running), Answer.of({**COMPLETED, "id": "job_3"}))
    ours, theirs = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "parallelrun", "job", "top", "job_3"],
        stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)

    assert command.wait(30) == 0
    assert b"1/4 mini-batches" in shown
    assert shown.index(b"\x1b[?1049h") < shown.index(b"1/4 mini-batches") < shown.index(b"\x1b[?1049l")
    assert b"completed" in shown.partition(b"\x1b[?1049l")[2]


def test_a_report_is_one_file_of_what_the_server_says(
    api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    usage = "Utc Time,Cpu Percent,Memory Used Percent\n2026-11-21T09:30:00,50,20\n2026-11-21T09:30:04,75,30\n"
    path = "sys/perf/n1/node_resource_usage.csv"
    api.on(
        "GET",
        "/v1/jobs/job_1/logs",
        Answer.of({"items": [{"path": path, "bytes": len(usage), "modified": "2026-01-02T03:04:05.000Z"}]}),
    )
    api.on("GET", f"/v1/jobs/job_1/logs/{path}", Answer(usage.encode()))
    api.on("GET", "/v1/jobs/job_1/errors", Answer.of({"items": [{"category": "OOM_KILLED", "count": 2}], "count": 2}))

    assert main(["job", "report", "job_1"]) == 0

    assert capsys.readouterr().out == "job_1.html\n"
    text = Path("job_1.html").read_text()
    assert "OOM_KILLED" in text
    assert "CPU, at most 75 %" in text
    assert [file.name for file in tmp_path.iterdir()] == ["job_1.html"]
    assert main(["job", "report", "job_1", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert main(["job", "report", "job_1", "-o", "no/such/folder.html"]) == 1
    assert "no/such" in capsys.readouterr().err
