"""`parallelrun job cancel`, `pause`, `delete` and others, of one job or of several."""

import json

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import CANCELED, JOB, Answer, FakeApi

pytestmark = pytest.mark.usefixtures("_at_the_api")


SEVERAL = {
    "cancel": (202, "canceled"), "pause": (202, "paused"), "resume": (202, "processing"), "retry": (202, "processing"),
    "archive": (200, "archived"), "restore": (200, "restored"), "prioritize": (200, "high"),
}  # fmt: skip


def test_cancel_says_what_became_of_the_job(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.on("POST", "/v1/jobs/job_1:cancel", Answer.of(CANCELED, 202))
    api.on("GET", "/v1/jobs/job_1", Answer.of(CANCELED))

    assert main(["job", "cancel", "job_1", "--wait"]) == 0
    assert capsys.readouterr().out == "job_1 canceled\n"


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
