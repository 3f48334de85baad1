"""Advice on a job over REST, from its folder alone: there is no Redis here."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_api.app import create_app
from parallelrun_api.context import build_context
from parallelrun_api.http.token import Token
from parallelrun_api.settings import ApiSettings
from parallelrun_core.adviser.asked import COMMON_QUESTIONS
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.reports import advice as advising
from parallelrun_master.reports.advice import lines_of_advice
from tests.unit.core.factories import outcome

BEGUN = 1_800_000_000.0
JOB = "job_01kav3x8n2h7q5m9c4t6"
SPEC = {"entry_script": "main.py", "inputs": {"data": {"path": "/inputs/data"}}, "mini_batch_size": 1}
GIANT = 17


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """Of a job whose mini-batches take a second, and one of them five minutes."""
    made = JobFolder(tmp_path, JOB)
    made.create(JobRecord(job_id=JOB, submitted=BEGUN, code="", spec=SPEC))
    writer = DecisionWriter(made.path, 1)
    free = [0.0, 0.0, 0.0, 0.0]
    for number in range(40):
        lane, seconds = free.index(min(free)), 300.0 if number == GIANT else 1.0
        times = {"elapsed_s": seconds, "run_s": seconds, "process_s": seconds}
        writer.add([outcome(number, process=f"process{lane:03d}", started=BEGUN + 1 + free[lane], **times)])
        free[lane] += seconds
    writer.close()
    return made


def end(seconds: float) -> JobResult:
    progress = Progress(scheduled=40, done=40)
    return JobResult(job_id=JOB, state=JobState.COMPLETED, started=BEGUN, ended=BEGUN + seconds, progress=progress)


def ask(root: Path, path: str, **params: Any) -> httpx.Response:
    # Nothing listens there: whoever asked Redis would be answered 503.
    settings = ApiSettings(root=root, redis_url="redis://127.0.0.1:1/0")
    app = create_app(build_context(settings), Token())

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(f"/v1/jobs/{path}", params=params)

    return asyncio.run(asked())


def test_a_finished_job_is_advised_on_without_redis(folder: JobFolder) -> None:
    folder.conclude(end(306))

    advice = ask(folder.root, f"{JOB}/advice").json()

    assert [(each["id"], each["mini_batches"]) for each in advice["findings"]] == [("giant_item", [GIANT])]
    assert advice["basis"]["seconds"] == 306
    assert not advice["basis"]["is_running"]


def test_a_job_that_runs_is_advised_on_by_what_has_ended(folder: JobFolder) -> None:
    advice = ask(folder.root, f"{JOB}/advice", min_saving_s=100).json()

    assert advice["basis"]["is_running"]
    assert [each["id"] for each in advice["findings"]] == ["giant_item"]
    assert ask(folder.root, f"{JOB}/advice", min_saving_s=1000).json()["findings"] == []


def test_other_settings_are_computed(folder: JobFolder) -> None:
    curve = ask(folder.root, f"{JOB}/advice/what-if", what_if="processes=1,4", price=2).json()

    assert (curve["setting"], curve["now"], [each["value"] for each in curve["points"]]) == ("processes", 4, [1, 4])
    one, four = curve["points"]
    assert one["seconds"] == pytest.approx(340, abs=2)
    assert four["cost"] == pytest.approx(2 * four["seconds"] / 3600)


@pytest.mark.parametrize("asked", ["colour=1..4", "nodes=4..x", "nodes=0..3", "nodes", "processes=1..50000"])
def test_what_can_not_be_computed_is_refused(folder: JobFolder, asked: str) -> None:
    answer = ask(folder.root, f"{JOB}/advice/what-if", what_if=asked)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].endswith("what_if")


def test_there_is_no_advice_without_a_job(tmp_path: Path) -> None:
    assert ask(tmp_path, f"{JOB}/advice").status_code == 404


def test_the_result_of_a_job_says_what_would_make_it_faster(folder: JobFolder) -> None:
    lines = lines_of_advice(folder, end(306))

    assert lines[1].startswith("What would make it faster")
    assert lines[2].startswith("1. Mini-batch 17 takes 300 times as long as usual")
    assert lines_of_advice(folder, end(59)) == []


def test_no_job_fails_for_advice(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise IndexError("a mistake")

    monkeypatch.setattr("parallelrun_core.adviser.advising.advise", fails)
    assert lines_of_advice(folder, end(306)) == []


def test_advice_on_a_large_job_is_kept_by_its_leader(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advising, "LEAST_KEPT", 1)
    asked = [("advice", {}), *(("advice/what-if", {"what_if": each}) for each in COMMON_QUESTIONS)]

    def answers() -> list[Any]:
        return [ask(folder.root, f"{JOB}/{path}", **query).json() for path, query in asked]

    folder.conclude(end(306))
    computed = answers()
    lines_of_advice(folder, end(306))
    for log in folder.path.glob("decisions.*"):
        log.unlink()
    assert answers() == computed
    assert len(computed[0]["findings"]) == 1
    assert ask(folder.root, f"{JOB}/advice", min_saving_s=1).json()["findings"] == []


def test_advice_that_was_kept_is_not_of_a_job_that_goes_on(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advising, "LEAST_KEPT", 1)
    folder.conclude(end(306))
    lines_of_advice(folder, end(306))
    folder.reopen(Reopening(generation=1, at=BEGUN + 350, retry_failed=True))
    assert ask(folder.root, f"{JOB}/advice").json()["basis"] is None
    folder.conclude(end(400))
    assert ask(folder.root, f"{JOB}/advice").json()["basis"] is None


def test_advice_that_the_page_asks_for_is_what_leaders_keep() -> None:
    source = (Path(__file__).parents[3] / "studio/src/views/job/advice/what_if.tsx").read_text()
    ranges = dict(re.findall(r'^  (\w+): "([\d,]+)",$', source, re.MULTILINE))
    assert [f"{setting}={values}" for setting, values in ranges.items()] == list(COMMON_QUESTIONS)
