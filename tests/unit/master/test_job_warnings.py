"""Warnings about a job's data: those that leaders find outlive them, and count once."""

from __future__ import annotations

from pathlib import Path

import msgspec

from parallelrun_core.folder.decided import Decided
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_core.wire.masking import Mask
from parallelrun_master.ledger.job_warnings import JobWarnings
from tests.unit.core.factories import outcome

SKIPPED = DataWarning("skipped", "in/_SUCCESS", "", "the file was skipped", "name it in inputs", 1, "file")


def warnings_of(folder: Path, term: int, decided: Decided | None = None, **secrets: str) -> JobWarnings:
    return JobWarnings.open(folder, term, decided or Decided(), Mask({"environment_variables": secrets}))


def test_job_warnings_of_leaders_and_of_mini_batches_stand_together(tmp_path: Path) -> None:
    decided = Decided()
    decided.accept(outcome(0, warnings=(DataWarning("k", "in/a.csv", "c", "w", "r"),)))
    warnings = warnings_of(tmp_path, 1, decided)
    warnings.add(SKIPPED)
    assert warnings.totals().lines() == [
        "in/a.csv, column 'c': w; r.",
        "in/_SUCCESS: the file was skipped; name it in inputs.",
    ]


def test_job_warnings_of_a_leader_that_died_are_kept_and_not_counted_again(tmp_path: Path) -> None:
    first = warnings_of(tmp_path, 1)
    for _ in range(3):
        first.add(SKIPPED)
    second = warnings_of(tmp_path, 2)
    second.add(SKIPPED)
    for warnings in (second, warnings_of(tmp_path, 3)):
        assert [each.times for each in warnings.totals()] == [3]


def test_job_warnings_file_that_is_damaged_fails_nothing(tmp_path: Path) -> None:
    warnings_of(tmp_path, 1).add(SKIPPED)
    (tmp_path / "warnings.2.json").write_bytes(b'[["k"')
    assert [each.times for each in warnings_of(tmp_path, 3).totals()] == [1]


def test_job_warnings_of_leaders_have_no_secrets(tmp_path: Path) -> None:
    warnings_of(tmp_path, 1, PASSWORD="hunter22").add(msgspec.structs.replace(SKIPPED, file="in/hunter22"))
    assert "hunter22" not in (tmp_path / "warnings.1.json").read_text()
