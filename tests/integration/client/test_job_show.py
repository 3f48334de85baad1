"""`parallelrun job list`, `show`, `explain`, `mini-batches`, `failed-items` and `remembered`, and `node list`."""

import json
import re
import time

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import CANCELED, FAILED, JOB, Answer, FakeApi

pytestmark = pytest.mark.usefixtures("_at_the_api")


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
    api.on("GET", "/v1/jobs/job_2", Answer.of({**CANCELED, "id": "job_2"}))
    assert main(["job", "show", "job_2"]) == 0
    assert "run only what has no result yet: parallelrun job resume job_2\n" in capsys.readouterr().out


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
    assert "s already: 3 items, first /data/a.tif\n" in shown
    assert "mini-batch 3 took 75.0 s: 10 items, first /data/big.tif\n" in shown
    assert "mini-batch 1 (failed) took 2.5 s: /data/odd.tif\n" in shown


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
