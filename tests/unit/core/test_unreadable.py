"""What the log says of jobs that can't be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.folder import unreadable
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs


class Log:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def error(self, action: str, **more: Any) -> None:
        self.told.append({"action": action, **more})

    def actions(self) -> list[str]:
        return [line["action"] for line in self.told]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(unreadable, "logger", lambda: log)
    return log


@pytest.mark.parametrize(
    "error, action",
    [
        (NotFound("gone"), "job_folder_missing"),
        (NewerSchema("schema 9"), "job_too_new"),
        (CorruptLog("no JSON"), "job_unreadable"),
        (PermissionError(13, "Permission denied"), "job_unreadable"),
    ],
)
def test_each_reason_has_a_name_and_says_where_it_looked(error: Exception, action: str, log: Log) -> None:
    assert isinstance(error, UNREADABLE)
    SkippedJobs(Path("/data")).report("job_a", error)
    assert log.told == [{"action": action, "job_id": "job_a", "reason": str(error), "root": "/data"}]


def test_a_job_is_told_of_again_only_when_the_reason_changes_or_it_could_be_read(log: Log) -> None:
    skipped = SkippedJobs(Path("/data"))
    for error in (NotFound("gone"), NotFound("still"), CorruptLog("half there"), CorruptLog("still half")):
        skipped.report("job_a", error)
    assert log.actions() == ["job_folder_missing", "job_unreadable"]
    skipped.forget("job_a")
    skipped.report("job_a", CorruptLog("again"))
    skipped.keep_only(["job_a"])
    skipped.report("job_a", CorruptLog("and again"))
    assert log.actions()[2:] == ["job_unreadable"]
    skipped.keep_only([])
    skipped.report("job_a", CorruptLog("new to us"))
    assert log.actions()[3:] == ["job_unreadable"]
