"""What the proofs about remembered answers find when a part of the mechanism is gone."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from parallelrun_worker.script_api.memory import Memory
from tests.twins.sabotage import expect_failure, nothing
from tests.unit.worker import test_memory as memory


def test_answers_that_are_not_synced_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with patch.object(Memory, "_sync", nothing), pytest.raises(IndexError):
        memory.test_memory_has_synced_what_it_returns_from(tmp_path, monkeypatch)


def test_answers_that_only_their_process_knows_are_found(tmp_path: Path) -> None:
    with patch.object(Memory, "_read_on", nothing), expect_failure():
        memory.test_memory_of_one_process_is_that_of_all(tmp_path)
