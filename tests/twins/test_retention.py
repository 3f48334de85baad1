"""Retention without what makes it safe: the proofs must fail."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.golden.opened import opened
from tests.integration.test_disk_full import SmallDisk, small_disks, wait_below_the_floor_and_go_on
from tests.twins.sabotage import always, expect_failure, nothing, replaced
from tests.unit.backup import test_backup as backups
from tests.unit.retention import test_sweep as sweeps
from tests.unit.retention.roots import Root

__all__ = ["small_disks"]


@pytest.mark.parametrize(
    "mechanism, stand_in",
    [
        ("parallelrun_core.retention.references:References.read_documents", nothing),
        ("parallelrun_core.retention.policy:references_among", always({})),
    ],
)
def test_a_sweep_that_removes_what_is_needed_is_found(mechanism: str, stand_in: object, tmp_path: Path) -> None:
    with replaced(mechanism, stand_in), expect_failure():  # type: ignore[arg-type]
        sweeps.test_retention_keeps_what_something_refers_to(Root(tmp_path))


@pytest.mark.parametrize(
    "proof",
    [
        sweeps.test_retention_puts_back_a_snapshot_that_was_submitted_again_meanwhile,
        sweeps.test_retention_puts_back_a_job_that_was_reopened_or_named_meanwhile,
    ],
)
def test_a_sweep_that_does_not_look_again_before_it_removes_is_found(proof: object, tmp_path: Path) -> None:
    with replaced("parallelrun_core.retention.sweep:put_back", always(False)), expect_failure():
        proof(Root(tmp_path))  # type: ignore[operator]


def test_a_sweep_that_leaves_what_a_killed_one_has_set_aside_is_found(tmp_path: Path) -> None:
    root = Root(tmp_path)
    with replaced("parallelrun_core.retention.sweep:list_set_aside", always(())), expect_failure():
        sweeps.test_retention_notes_on_a_job_a_week_before_that_a_rule_removes_it(root)


def test_a_rule_that_removes_jobs_without_a_notice_is_found(tmp_path: Path) -> None:
    with replaced("parallelrun_core.retention.policy:_removed_at", always(0.0)), expect_failure():
        sweeps.test_retention_notes_on_a_job_a_week_before_that_a_rule_removes_it(Root(tmp_path))


def test_a_check_that_reads_no_rows_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    opened("v1", root)
    with replaced("parallelrun_core.folder.takeover:has_rows", always(True)), expect_failure():
        backups.test_verify_finds_what_was_changed(root, "jobs/*/parts/*", capsys)


def test_a_backup_beside_which_sweeps_go_on_is_found(tmp_path: Path) -> None:
    root = tmp_path / "root"
    opened("v1", root)
    with replaced("parallelrun_core.backup.copying:locked", lambda _: nullcontext(True)), expect_failure():
        backups.test_a_backup_and_a_sweep_keep_each_other_out(root, tmp_path)


@pytest.mark.integration
def test_a_cluster_that_fills_its_volume_to_the_last_byte_is_found(small_disks: list[SmallDisk]) -> None:
    with expect_failure():
        wait_below_the_floor_and_go_on(small_disks, without="disk.floor")
