"""The errors of workers, as their user finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_agent.workers.error_files import ErrorFiles
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure
from tests.unit.core.factories import failed


@pytest.fixture
def files(tmp_path: Path) -> ErrorFiles:
    return ErrorFiles(tmp_path / "logs", "node", Mask({"environment_variables": {"TOKEN": "canary-secret"}}))


@pytest.mark.parametrize("message", ["plain", chr(0xDCFF), chr(0xD800), "\0\n"])
def test_any_error_can_be_kept_for_its_user(files: ErrorFiles, tmp_path: Path, message: str) -> None:
    files.add_try(failed(3, message=message, tries=2))
    files.add_init("process000", Failure("INIT_EXCEPTION", message, "Traceback"))
    text = (tmp_path / "logs" / "user" / "error" / "node" / "process000.txt").read_bytes()
    assert b"mini-batch 3, try 2: RUN_EXCEPTION" in text
    assert b"INIT_EXCEPTION" in text


def test_what_a_worker_could_not_say_itself_is_in_its_own_log(files: ErrorFiles, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    files.add_try(failed(3, failure=Failure("RUN_TIMEOUT", "run() took too long."), tries=2))
    files.add_try(failed(4, failure=Failure("RUN_EXCEPTION", "ValueError", "At 3\nValueError\n")))
    files.add_init("process000", Failure("INIT_DIED", "The worker ended in init(), code 1."))
    for log in (logs / "sys" / "node", logs / "sys" / "error" / "node"):
        told = [line.split("|")[1::3] for line in (log / "node" / "process000.txt").read_text().splitlines()]
        assert told == [
            ["ERROR", "Mini-batch 3, try 2: run() took too long."],
            ["ERROR", "Init(): The worker ended in init(), code 1."],
        ]
    in_full = (logs / "user" / "error" / "node" / "process000.txt").read_text().split("\n\n")
    assert [entry.partition(" ")[2] for entry in in_full[:2]] == [
        "mini-batch 3, try 2: RUN_TIMEOUT\n    run() took too long.",
        "mini-batch 4, try 1: RUN_EXCEPTION\n    At 3\n    ValueError",
    ]


def test_a_disk_that_is_full_is_no_further_error(files: ErrorFiles, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    files.add_try(failed(3))


def test_secrets_of_the_job_are_masked(files: ErrorFiles, tmp_path: Path) -> None:
    files.add_shutdown("process000", Failure("RUN_EXCEPTION", "with canary-secret", "At 3\nwith canary-secret"))
    text = (tmp_path / "logs" / "user" / "error" / "node" / "process000.txt").read_text()
    assert "shutdown(): RUN_EXCEPTION" in text
    assert "canary-secret" not in text
