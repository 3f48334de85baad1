"""What concatenations have left is removed when the job has ended, and a store that is away holds up nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from parallelrun_master.leader import leftovers
from parallelrun_master.leader.leftovers import JobLeftovers

URL = "s3://b/out/rows.txt"


class Store:
    """A store that has these uploads, and answers when it is let."""

    def __init__(self, *uploads: str) -> None:
        self.uploads = [*uploads]
        self.answers = threading.Event()
        self.answers.set()

    def unfinished(self, path: str, job_id: str) -> Sequence[str]:
        assert self.answers.wait(30)
        return [*self.uploads]

    def discard(self, unfinished: Sequence[str]) -> None:
        assert self.answers.wait(30)
        if "denied" in unfinished:
            raise PermissionError(13, "AccessDenied", URL)
        self.uploads = [each for each in self.uploads if each not in unfinished]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store("a", "b")
    monkeypatch.setattr(leftovers, "storage_of", lambda path: made)
    return made


def test_only_what_was_there_when_it_was_asked_for_is_removed(store: Store) -> None:
    of = JobLeftovers(URL, "job_a", Mock(), Mock())
    of.find()
    store.uploads.append("of the next generation")
    of.discard()
    assert store.uploads == ["of the next generation"]


def test_a_store_that_does_not_answer_is_not_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.3)
    store.answers.clear()
    alive, log = Mock(), Mock()
    of = JobLeftovers(URL, "job_a", alive, log)
    of.find()
    of.discard()
    assert alive.call_count > 1, "the lease was not renewed meanwhile"
    assert [call.args for call in log.warning.call_args_list] == [("uploads_not_removed",)]
    store.answers.set()
    assert store.uploads == ["a", "b"]


def test_a_store_that_refuses_is_named_in_the_log(store: Store) -> None:
    store.uploads.append("denied")
    log = Mock()
    of = JobLeftovers(URL, "job_a", Mock(), log)
    of.find()
    of.discard()
    assert "AccessDenied" in log.warning.call_args.kwargs["error"]


def test_files_are_removed_as_well(tmp_path: Path) -> None:
    left = tmp_path / ".merging-job_a-0123456789abcdef"
    left.touch()
    of = JobLeftovers(str(tmp_path / "rows.txt"), "job_a", Mock(), Mock())
    of.find()
    of.discard()
    assert not left.exists()
