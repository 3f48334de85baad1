"""`parallelrun job …` and `node list` against a server: stdout, stderr and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from parallelrun.cli import main
from parallelrun.resources.logs import JobLogs
from tests.integration.client.fake_api import COMPLETED, HANG_UP, JOB, Answer, FakeApi, Request

MODIFIED = {"modified": "2026-01-02T03:04:05.000Z"}
EVENTS = "/v1/jobs/job_1/events"
FAILED = {
    **COMPLETED,
    "state": "failed",
    "failure": {
        "code": "TOO_MANY_FAILURES",
        "summary": "2 items have failed.",
        "first_cause": "x\x1b[2J",
        "log": "logs/user/error/a.txt",
    },
}
CANCELED = {**COMPLETED, "state": "canceled"}


@pytest.fixture(autouse=True)
def _server(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", api.url)
    monkeypatch.setenv("PARALLELRUN_TOKEN", "canary")


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
    monkeypatch.setattr("parallelrun.resources.watch._TOLD_AFTER_S", 0.5)
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
    monkeypatch.setattr("parallelrun.resources.watch._TOLD_AFTER_S", 0.0)
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


def test_explain_says_each_condition_and_what_to_do(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    explanation = {
        "job": "job_1", "mini_batch": 7, "runs": False, "answer": "no node is there", "advice": "start one",
        "conditions": [
            {"name": "master", "state": "met", "text": "a master leads it"},
            {"name": "nodes", "state": "blocks", "text": "no node is there", "advice": "start one"},
        ],
    }  # fmt: skip
    api.on("GET", "/v1/jobs/job_1/explanation", Answer.of(explanation), Answer.of(explanation))

    assert main(["job", "explain", "job_1", "--mini-batch", "7"]) == 0
    assert api.requests[-1].query == {"mini_batch": "7"}
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["mini-batch 7: no node is there", "what to do: start one"]
    assert lines[3:] == [
        "CONDITION  STATE   WHY", "master     ok      a master leads it", "nodes      blocks  no node is there",
    ]  # fmt: skip
    assert main(["job", "explain", "job_1", "-o", "name"]) == 0
    assert capsys.readouterr().out == "nodes\n"


def test_show_names_the_slowest_mini_batches_with_their_first_files(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = {"scheduled": 9, "done": 4, "listing_done": True, "longest": 7, "longest_since": time.time() - 90}
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB | {"state": "processing", "progress": progress}))
    inputs = {"items": 3, "total": 3, "files": ["/data/a.tif", "/data/b.tif", "/data/c.tif"]}
    api.on("GET", "/v1/jobs/job_1/mini-batches/7/inputs", Answer.of(inputs))
    slow = [
        {"id": 3, "status": "done", "run_s": 75.0, "items": 10, "first_input": "/data/big.tif"},
        {"id": 1, "status": "failed", "run_s": 2.5, "items": 1, "first_input": "/data/odd.tif"},
    ]
    api.on("GET", "/v1/jobs/job_1/mini-batches", Answer.of({"items": slow}))

    assert main(["job", "show", "job_1"]) == 0
    shown = capsys.readouterr().out
    assert "s already: 3 items from /data/a.tif on\n" in shown
    assert "mini-batch 3 took 75 s: 10 items from /data/big.tif on\n" in shown
    assert "mini-batch 1 (failed) took 2.5 s: /data/odd.tif\n" in shown


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


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "count.py").write_text("def run(mini_batch): ...")
    (tmp_path / "job.yml").write_text("code: src\nentry_script: count.py\ninputs: data\n")
    return str(tmp_path / "job.yml")


def test_create_prints_the_id_and_on_stderr_what_next(
    api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str
) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))

    assert main(["job", "create", "-f", job_file, "--set", "name=other", "--idempotency-key", "k"]) == 0

    shown = capsys.readouterr()
    assert shown.out == "job_1\n"
    assert "parallelrun job stream job_1" in shown.err
    assert api.requests[0].headers["Idempotency-Key"] == "k"
    assert b'"name": "other"' in api.requests[0].body


def test_what_is_made_or_changed_comes_in_the_form_of_what_is_shown(
    api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str
) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))
    for verb in ("cancel", "resume", "retry"):
        api.on("POST", f"/v1/jobs/job_1:{verb}", Answer.of(JOB, 202))
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB))

    def shown(*line: str) -> object:
        assert main(["job", *line, "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    job = shown("show", "job_1")
    assert job == shown("create", "-f", job_file) == shown("cancel", "job_1")
    assert job == shown("resume", "job_1") == shown("retry", "job_1")


def test_create_can_have_a_url_told_of_the_end(api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))
    create = ["job", "create", "-f", job_file]

    assert main([*create, "--notify", "https://example.com/hook", "--notify-secret", "pager"]) == 0
    assert b'"notify": {"url": "https://example.com/hook", "secret": "pager"}' in api.requests[0].body
    for wrong in (["--notify", "ftp://x"], ["--notify", "http://169.254.169.254/"], ["--notify-secret", "pager"]):
        assert main([*create, *wrong]) == 1
        assert "--notify: " in capsys.readouterr().err
    assert main([*create, "--notify", "ftp://x", "--notify-secret", "../x"]) == 1
    reported = capsys.readouterr().err
    assert "--notify: must be a URL" in reported
    assert "--notify-secret: " in reported
    assert len(api.requests) == 1


def test_create_can_follow_at_once(api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))
    api.on("GET", "/v1/jobs/job_1", Answer.of(FAILED))
    api.on("GET", EVENTS, Answer.events(("", "end", FAILED)))

    assert main(["job", "create", "-f", job_file, "--stream"]) == 3
    assert capsys.readouterr().out == "job_1\n"


def test_a_spec_that_the_server_refuses_is_reported_field_by_field(
    api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str
) -> None:
    problems = [
        {"pointer": "/inputs/data/path", "message": "there is no such folder", "hint": None},
        {"pointer": "/entry_script", "message": "count.py does not define run()", "hint": "it needs one"},
    ]
    api.on("POST", "/v1/jobs", Answer.of({"title": "The request is not valid.", "errors": problems}, 422))

    assert main(["job", "create", "-f", job_file]) == 2

    assert capsys.readouterr().err.splitlines() == [
        "error: invalid input:",
        f"  {job_file}:3: /inputs: there is no such folder",
        f"  {job_file}:2: /entry_script: count.py does not define run()",
        "    hint: it needs one",
    ]


def test_lists_and_single_jobs_are_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/jobs", Answer.of({"items": [JOB, FAILED]}))
    api.on("GET", "/v1/jobs/job_1", Answer.of(FAILED))

    assert main(["job", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == [
        "ID", "NAME", "TYPE", "STATE", "MINI-BATCHES", "FAILED", "SUBMITTED", "ENDED",
    ]  # fmt: skip
    assert main(["job", "list", "-o", "json", "--status", "failed"]) == 0
    assert [job["state"] for job in json.loads(capsys.readouterr().out)] == ["processing", "failed"]
    assert main(["job", "show", "job_1"]) == 0
    assert re.search(r"^failure: +failed: 2 items have failed\.$", capsys.readouterr().out, re.MULTILINE)
    assert main(["job", "show", "job_1", "-o", "name"]) == 0
    assert capsys.readouterr().out == "job_1\n"


def test_mini_batches_are_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    failure = {"category": "RUN_EXCEPTION", "message": "ValueError:\nbad", "traceback": ""}
    failed = {
        "id": 7, "status": "failed", "tries": 3, "items": 2, "rows": 0, "run_s": 0.25049, "node": "n1",
        "failure": failure,
    }  # fmt: skip
    pages = [Answer.of({"items": [failed]}), Answer.of({"items": [{**failed, "id": 8}, failed]})]
    api.on("GET", "/v1/jobs/job_1/mini-batches", *pages)

    assert main(["job", "mini-batches", "job_1", "--status", "failed"]) == 0
    titles, row = capsys.readouterr().out.splitlines()
    assert titles.split() == ["ID", "STATUS", "TRIES", "ITEMS", "ROWS", "SECONDS", "NODE", "PROCESS", "ERROR"]
    assert row.startswith("7   failed  3      2      0")
    assert "  0.25     n1" in row
    assert "RUN_EXCEPTION: ValueError:" in row

    assert main(["job", "mini-batches", "job_1", "--limit", "1", "-o", "name"]) == 0
    assert capsys.readouterr().out == "8\n"
    assert [request.query.get("status") for request in api.requests] == ["failed", None]


def test_failed_items_are_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    why = {"category": "RUN_EXCEPTION", "message": "ValueError: x", "place": "e.py:3"}
    listed = {"items": [{"item": "/in/7.txt", "mini_batch": 1, **why}], "total": 2}
    pages = [Answer.of({**listed, "next_page_token": "more"}), Answer.of(listed)]
    api.on("GET", "/v1/jobs/job_1/failed-items", *pages)

    assert main(["job", "failed-items", "job_1", "--mini-batch", "1"]) == 0
    titles, first, _ = capsys.readouterr().out.splitlines()
    assert titles.split() == ["ITEM", "MINI-BATCH", "CATEGORY", "PLACE", "MESSAGE"]
    assert first.split() == ["/in/7.txt", "1", "RUN_EXCEPTION", "e.py:3", "ValueError:", "x"]
    assert [request.query.get("mini_batch") for request in api.requests] == ["1", "1"]

    assert main(["job", "failed-items", "job_1", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "item,mini_batch,category,message,place", '"/in/7.txt",1,"RUN_EXCEPTION","ValueError: x","e.py:3"',
    ]  # fmt: skip


def test_remembered_answers_are_shown_and_deleted(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"key": "one", "bytes": 24, "value_begin": "1", "log": "user/remembered/n1/process000.jsonl"}
    api.on("GET", "/v1/jobs/job_1/remembered", Answer.of({"items": [line], "bytes": 24}))
    api.on("DELETE", "/v1/jobs/job_1/remembered", Answer.of({"count": 1, "bytes": 24}))

    assert main(["job", "remembered", "job_1", "--text", "on"]) == 0
    titles, row = capsys.readouterr().out.splitlines()
    assert titles.split() == ["KEY", "BYTES", "VALUE", "LOG"]
    assert row.split() == ["one", "24", "1", "user/remembered/n1/process000.jsonl"]

    assert main(["job", "forget", "job_1", "--key", "one"]) == 0
    assert capsys.readouterr().out == "job_1: 1 answer deleted, 24 bytes\n"
    assert main(["job", "forget", "job_1", "--all"]) == 0
    assert [request.query for request in api.requests[1:]] == [{"key": "one"}, {}]
    for wrong in ([], ["--all", "--key", "one"]):
        assert main(["job", "forget", "job_1", *wrong]) == 1
        assert "--key" in capsys.readouterr().err


def test_nodes_are_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/nodes", Answer.of({"items": [{"node": "node1", "state": "ready", "slots": 4, "busy": 1}]}))

    assert main(["node", "list"]) == 0

    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["node1", "ready", "1/4"]


def test_what_was_printed_is_printed_by_its_name(api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    paths = [f"user/stdout/node{number}/process000.stdout.txt" for number in (1, 2)]
    other = {"path": "user/stderr/node1/process000.stderr.txt", "bytes": 3, **MODIFIED}
    listed = {"items": [*({"path": path, "bytes": 2, **MODIFIED} for path in paths), other]}
    api.on("GET", "/v1/jobs/job_1/logs", Answer.of(listed))
    for number, path in enumerate(paths):
        api.on("GET", f"/v1/jobs/job_1/logs/{path}", Answer(f"{number}\n".encode()))

    assert main(["job", "logs", "job_1", "stdout"]) == 0

    assert capfdbinary.readouterr().out == b"0\n1\n"


def test_logs_are_listed_and_printed_as_they_are(api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    raw = b"\x1b[31mred\xff\n"
    api.on("GET", "/v1/jobs/job_1/logs", Answer.of({"items": [{"path": "user/a.txt", "bytes": 9, **MODIFIED}]}))
    api.on("GET", "/v1/jobs/job_1/logs/user/a.txt", Answer(raw))

    assert main(["job", "logs", "job_1", "-o", "name"]) == 0
    assert capfdbinary.readouterr().out == b"user/a.txt\n"
    assert main(["job", "logs", "job_1", "user/a.txt", "--tail", "5"]) == 0
    assert capfdbinary.readouterr().out == raw
    assert api.requests[-1].query == {"tail": "5"}


def test_a_character_that_two_pieces_of_a_log_share_is_shown(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobLogs, "read", lambda *_, **__: iter([b"caf\xc3", b"\xa9\x1b[2J\n"]))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert main(["job", "logs", "job_1", "user/a.txt"]) == 0
    assert capsys.readouterr().out.startswith("caf\u00e9\\x1b[2J")


def test_download_prints_where_the_files_are(api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on("GET", "/v1/jobs/job_1/outputs", Answer.of({"items": [{"path": "rows.txt", "bytes": 4, **MODIFIED}]}))
    api.on("GET", "/v1/jobs/job_1/outputs/rows.txt", Answer(b"row\n"))

    assert main(["job", "download", "job_1", "-p", str(tmp_path / "got")]) == 0

    assert capsys.readouterr().out == f"{tmp_path}/got/rows.txt\n"
    assert (tmp_path / "got" / "rows.txt").read_bytes() == b"row\n"


def test_a_download_takes_all_pages_and_asks_for_each_once(
    api: FakeApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    listing, names = "/v1/jobs/job_1/outputs", ["a", "b/c", "b/d"]
    more = {
        "items": [{"path": name, "bytes": 4, **MODIFIED} for name in names[:2]],
        "truncated": True,
        "next_page_token": "t",
    }
    rest = {"items": [{"path": names[2], "bytes": 4, **MODIFIED}], "truncated": False, "next_page_token": None}
    api.on("GET", "/v1/jobs/job_1", Answer.of(COMPLETED))
    api.on("GET", listing, Answer.of(more), Answer.of(rest))
    for name in names:
        api.on("GET", f"{listing}/{name}", Answer(name.encode()))

    assert main(["job", "download", "job_1", "-p", str(tmp_path)]) == 0

    assert capsys.readouterr().out.split() == [f"{tmp_path}/{name}" for name in names]
    assert [(tmp_path / name).read_text() for name in names] == names
    assert [request.query.get("page_token") for request in api.asked(listing)] == [None, "t"]
    assert len(api.asked("/v1/jobs/job_1")) == 1


def test_a_job_without_outputs_can_not_be_downloaded(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("GET", "/v1/jobs/job_1", Answer.of(JOB))
    api.on("GET", "/v1/jobs/job_1/outputs", Answer.of({"items": []}))

    assert main(["job", "download", "job_1"]) == 1
    assert "its state is processing" in capsys.readouterr().err


def test_cancel_says_what_became_of_the_job(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("POST", "/v1/jobs/job_1:cancel", Answer.of(CANCELED, 202))
    api.on("GET", "/v1/jobs/job_1", Answer.of(CANCELED))

    assert main(["job", "cancel", "job_1", "--wait"]) == 0
    assert capsys.readouterr().out == "job_1 canceled\n"


SEVERAL = {
    "cancel": (202, "canceled"), "pause": (202, "paused"), "resume": (202, "processing"), "retry": (202, "processing"),
    "archive": (200, "archived"), "restore": (200, "restored"), "prioritize": (200, "high"),
}  # fmt: skip


@pytest.mark.parametrize("verb", SEVERAL)
def test_a_verb_takes_several_jobs_and_says_what_became_of_each(
    api: FakeApi, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    status, word = SEVERAL[verb]
    for number in (1, 2, 4):
        job = {**(CANCELED if verb == "cancel" else JOB), "id": f"job_{number}", "priority": "high"}
        api.on("POST", f"/v1/jobs/job_{number}:{verb}", Answer.of(job, status))
    ended = {"code": "conflict", "detail": "It has completed."}
    api.on("POST", f"/v1/jobs/job_3:{verb}", Answer.of(ended, 409))
    more = ["high"] if verb == "prioritize" else []

    assert main(["job", verb, "job_1", "job_2", "job_1", *more]) == 0
    assert capsys.readouterr().out == f"job_1 {word}\njob_2 {word}\n", "each once"

    assert main(["job", verb, "job_1", "job_3", "job_4", *more]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"job_1 {word}\njob_4 {word}\n", "what is refused keeps none of the others back"
    assert "error: job_3: It has completed.\n1 of 3 were refused\n" in shown.err

    assert main(["job", verb, "job_1", "job_3", "job_4", *more, "-o", "json"]) == 1
    assert [each["id"] for each in json.loads(capsys.readouterr().out)] == ["job_1", "job_4"]
    assert main(["job", verb, "job_3", *more]) == 1
    assert capsys.readouterr().err == "error: It has completed.\n"


def test_several_jobs_are_canceled_before_any_is_waited_for(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    for job in ("job_1", "job_2"):
        api.on("POST", f"/v1/jobs/{job}:cancel", Answer.of({**JOB, "id": job}, 202))
        api.on("GET", f"/v1/jobs/{job}", Answer.of({**CANCELED, "id": job}))

    assert main(["job", "cancel", "job_1", "job_2", "--wait"]) == 0
    assert capsys.readouterr().out == "job_1 canceled\njob_2 canceled\n"
    assert [each.method for each in api.requests[:2]] == ["POST", "POST"]


def test_several_jobs_are_deleted_but_for_those_that_are_refused(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    for job in ("job_1", "job_3"):
        api.on("DELETE", f"/v1/jobs/{job}", Answer(status=204))
    api.on("DELETE", "/v1/jobs/job_2", Answer.of({"code": "conflict", "detail": "A schedule refers to it."}, 409))

    assert main(["job", "delete", "job_1", "job_2", "job_3"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "job_1 deleted\njob_3 deleted\n"
    assert "error: job_2: A schedule refers to it." in shown.err


@pytest.mark.parametrize("line", [
    ("resume", "--stream"), ("retry", "--stream"), ("retry", "--mini-batches", "4"), ("resume", "--budget", "3"),
])  # fmt: skip
def test_what_is_for_one_job_is_refused_for_several_before_anything_is_asked(
    api: FakeApi, capsys: pytest.CaptureFixture[str], line: tuple[str, ...]
) -> None:
    verb, option, *value = line
    assert main(["job", verb, "job_1", "job_2", option, *value]) == 1
    assert option in capsys.readouterr().err
    assert not api.requests


def test_an_unreachable_server_exits_with_5(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()

    assert main(["job", "list", "--url", "http://127.0.0.1:9"]) == 5
    assert "No answer from http://127.0.0.1:9" in capsys.readouterr().err
    assert time.monotonic() - began < 10


def test_the_options_win_over_the_environment(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", "http://127.0.0.1:9")
    api.on("GET", "/v1/nodes", Answer.of({"items": []}))

    assert main(["node", "list", "--url", api.url, "--token", "other"]) == 0
    assert api.requests[0].headers["Authorization"] == "Bearer other"


def test_a_reader_that_has_seen_enough_is_no_error(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs", Answer.of({"items": [JOB] * 20_000}))

    listing = [sys.executable, "-P", "-m", "parallelrun", "job", "list", "--limit", "20000"]
    with subprocess.Popen(listing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline().startswith("ID ")
        command.stdout.close()
        assert command.stderr.read() == ""
