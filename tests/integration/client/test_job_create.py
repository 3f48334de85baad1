"""`parallelrun job create` against a server that answers as the test says."""

import json
from pathlib import Path

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import EVENTS, FAILED, JOB, Answer, FakeApi

pytestmark = pytest.mark.usefixtures("_at_the_api")


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
    for wrong in (["--notify", "ftp://x"], ["--notify", "http://169.254.169.254/"]):
        assert main([*create, *wrong]) == 1
        assert "--notify: " in capsys.readouterr().err
    assert main([*create, "--notify", "ftp://x", "--notify-secret", "../x"]) == 1
    reported = capsys.readouterr().err
    assert "--notify: must be a URL" in reported
    assert "--notify-secret: must be 1 to 128 letters" in reported
    assert main([*create, "--notify-secret", "pager"]) == 1
    assert "--notify-secret: it signs what --notify sends" in capsys.readouterr().err
    assert len(api.requests) == 1


def test_create_can_follow_at_once(api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str) -> None:
    api.on("POST", "/v1/jobs", Answer.of(JOB, 202))
    api.on("GET", "/v1/jobs/job_1", Answer.of(FAILED))
    api.on("GET", EVENTS, Answer.events(("", "end", FAILED)))

    assert main(["job", "create", "-f", job_file, "--stream"]) == 3
    assert capsys.readouterr().out == "job_1\n"


def test_an_option_that_has_no_effect_without_another_is_refused(
    api: FakeApi, capsys: pytest.CaptureFixture[str], job_file: str
) -> None:
    for command, option in (
        (["job", "create", "-f", job_file, "--strict"], "--strict"),
        (["job", "resume", "job_1", "--strict"], "--strict"),
        (["job", "retry", "job_1", "--strict"], "--strict"),
        (["job", "advise", "job_1", "--price", "2"], "--price"),
        (["job", "advise", "job_1", "--what-if", "nodes=1..4", "--min-saving", "5m"], "--min-saving"),
        (["job", "logs", "job_1", "a.txt", "-o", "json"], "--output"),
        (["job", "failed-items", "job_1", "--csv", "-o", "json"], "--output"),
        (["batch-endpoint", "invoke", "iris", "--input-type", "uri_file"], "--input-type"),
        (["init", "--data", "a", "--input", "b"], "--input"),
        (["azure-env", "--stop", "--config"], "--stop"),
    ):
        assert main(command) == 1, command
        assert option in capsys.readouterr().err.splitlines()[-1 - (option == "--input")], command
    assert api.requests == []


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
