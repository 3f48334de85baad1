"""The file that a condition is about may be anything: its worker has written it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parallelrun_core.errors import NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.pipelines.records import StepRecord
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.spec.later_inputs import StepOutput
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.wire.states import StepState
from parallelrun_master.pipelines.condition_values import truth_of


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """The path of the output; below it is the one folder that jobs may use."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "answer"


def truth(answer: Path) -> bool:
    root = answer.parent.parent / "root"
    job_id, spec = new_job_id(), {"command": "true", "outputs": {"is": {"type": "uri_file", "path": str(answer)}}}
    places = Places(roots=[str(answer.parent)])
    folder = JobFolder(root, job_id)
    folder.create(JobRecord(job_id=job_id, submitted=1.0, code="", spec=spec, places=places))
    record = StepRecord(step="ask", generation=0, at=1.0, action="start", job=job_id)
    known = {"ask": StepStanding(state=StepState.COMPLETED, record=record)}
    return truth_of(folder, StepOutput(step="ask", output="is"), known)


def test_a_file_or_the_one_file_of_a_folder_is_read(answer: Path) -> None:
    answer.write_text("True\n")
    assert truth(answer)
    answer.unlink()
    answer.mkdir()
    (answer / "it.txt").write_text("FALSE")
    assert not truth(answer)


def test_a_pipe_is_not_read(answer: Path) -> None:
    os.mkfifo(answer)
    with open(os.open(answer, os.O_RDWR | os.O_NONBLOCK), "wb", buffering=0) as pipe:
        pipe.write(b"true")
        with pytest.raises(NotFound, match="the output 'is' of the step 'ask' can't be read: it is no ordinary file"):
            truth(answer)


def _link(link: Path, secret: Path) -> None:
    secret.write_text("true")
    link.symlink_to(secret)


def elsewhere(answer: Path) -> None:
    _link(answer, answer.parent.parent / "secret")


def file_elsewhere(answer: Path) -> None:
    answer.mkdir()
    _link(answer / "it.txt", answer.parent.parent / "secret")


def folder_elsewhere(answer: Path) -> None:
    (folder := answer.parent.parent / "folder").mkdir()
    (folder / "it.txt").write_text("true")
    answer.symlink_to(folder)


def circle(answer: Path) -> None:
    answer.symlink_to(answer)


@pytest.mark.parametrize("put", [elsewhere, file_elsewhere, folder_elsewhere, circle])
def test_a_link_that_leads_elsewhere_or_nowhere_is_told_by_the_name_of_the_output(
    answer: Path, put: Callable[[Path], None]
) -> None:
    put(answer)
    with pytest.raises(NotFound, match="the output 'is' of the step 'ask'"):
        truth(answer)
