"""What the proofs about remembered answers find when a part of the mechanism is gone."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from parallelrun_api.submission import forgetting
from parallelrun_worker.script_api.memory import Memory
from tests.integration import test_remember as remembering
from tests.twins.sabotage import expect_failure, nothing
from tests.unit.worker import test_memory as memory


def test_answers_that_are_not_synced_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with patch.object(Memory, "_sync", nothing), pytest.raises(IndexError):
        memory.test_memory_has_synced_what_it_returns_from(tmp_path, monkeypatch)


def test_answers_that_only_their_process_knows_are_found(tmp_path: Path) -> None:
    with patch.object(Memory, "_read_on", nothing), expect_failure():
        memory.test_memory_of_one_process_is_that_of_all(tmp_path)


@pytest.mark.integration
def test_answers_that_stay_though_they_are_deleted_are_found() -> None:
    with patch.object(forgetting, "_replace", nothing), expect_failure():
        remembering.test_remembered_answer_that_was_deleted_is_asked_for_again_and_no_other()
