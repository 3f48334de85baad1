"""`parallelrun job logs` and `download` against a server that answers as the test says."""

import sys
from pathlib import Path

import pytest

from parallelrun.cli import main
from parallelrun.resources.outputs import JobLogs
from tests.integration.client.fake_api import COMPLETED, JOB, MODIFIED, Answer, FakeApi

pytestmark = pytest.mark.usefixtures("_at_the_api")


def test_what_was_printed_is_printed_by_its_name(api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    paths = [f"user/stdout/node{number}/process000.stdout.txt" for number in (1, 2)]
    other = {"path": "user/stderr/node1/process000.stderr.txt", "bytes": 3, **MODIFIED}
    listed = {"items": [*({"path": path, "bytes": 2, **MODIFIED} for path in paths), other]}
    api.on("GET", "/v1/jobs/job_1/logs", Answer.of(listed))
    for number, path in enumerate(paths):
        api.on("GET", f"/v1/jobs/job_1/logs/{path}", Answer(f"{number}\n".encode()))

    assert main(["job", "logs", "job_1", "stdout"]) == 0

    assert capfdbinary.readouterr().out == b"0\n1\n"
    api.on("GET", "/v1/jobs/job_2/logs", Answer.of({"items": []}))
    api.on("GET", "/v1/jobs/job_2", Answer.of({**JOB, "type": "pipeline"}))
    assert main(["job", "logs", "job_2", "stdout"]) == 0
    assert b"has printed to stdout; those of its steps may have: --step NAME" in capfdbinary.readouterr().err


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
