"""What the proofs about damaged disks find when damage isn't told from what it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.damage import Damage, next_whole_frame
from parallelrun_core.folder.term_log import Span, _readable_end, accept
from tests.twins.sabotage import expect_failure, replaced, without
from tests.unit.core import test_damage as damaged
from tests.unit.core import test_takeover as takeovers


def test_damage_that_is_taken_for_the_end_of_a_log_is_found(tmp_path: Path) -> None:
    with without("disk.tell_damage"), expect_failure():
        damaged.check_damage_is_passed_over(tmp_path)


def test_frames_that_are_still_written_and_taken_for_damage_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_it(fd: int, start: int, end: int) -> int | None:
        return next_whole_frame(fd, start + 1, end)

    with replaced("parallelrun_core.folder.record_log:next_whole_frame", after_it), expect_failure():
        damaged.test_what_is_written_while_it_is_read_is_no_damage(tmp_path, monkeypatch)


def test_what_a_paused_leader_adds_and_is_taken_for_damage_is_found(tmp_path: Path) -> None:
    def any_more(folder: Path, name: str, span: Span, *, on_damage: Any = None) -> int:
        end = _readable_end(folder, name, span)
        if on_damage is not None and end > span.start:
            on_damage(Damage(folder, span.start, end))
        return end

    with replaced("parallelrun_core.folder.term_log:_readable_end", any_more), expect_failure():
        damaged.check_what_a_paused_leader_adds(tmp_path)


@pytest.mark.parametrize(
    "reader", ["parallelrun_core.folder.decisions:accept", "parallelrun_master.ledger.retry_log:accept"]
)
def test_a_leader_that_cannot_do_without_a_header_is_found(reader: str, tmp_path: Path) -> None:
    with replaced(reader, lambda folder, name, **_: accept(folder, name)), expect_failure():
        damaged.check_damaged_headers(tmp_path)


def test_rows_of_another_job_that_are_taken_unseen_are_found(tmp_path: Path) -> None:
    with without("disk.check_rows"), expect_failure():
        takeovers.check_lost_rows(tmp_path)
