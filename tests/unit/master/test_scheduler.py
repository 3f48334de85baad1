"""Which errors are blamed on an input, and which are not: those end the leader's term, and another may get through."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.folder.manifest import Closing, ManifestWriter, read_closing
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.message import encode_files
from parallelrun_master.planning import input_cuts, record_scan
from parallelrun_master.planning.input_cuts import InputCuts
from parallelrun_master.publishing import scheduling
from parallelrun_master.publishing.scheduling import InputTrouble, InputUnreadable, Scheduler

# A leader has a process of its own, which ends with it and so closes its files.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """What a leader has left open is found here, and not in the middle of somebody else's test."""
    yield
    gc.collect()


def scheduler(folder: Path, inputs: Path, term: int = 1) -> Scheduler:
    return Scheduler(folder, JobSpec.parse({"entry_script": "e.py", "inputs": str(inputs)}), term)


def test_an_input_that_is_not_there_is_to_blame(tmp_path: Path) -> None:
    found = scheduler(tmp_path, tmp_path.parent / "nowhere")
    with pytest.raises(InputUnreadable, match="nowhere"):
        found.step(60)
    found.stop()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_what_is_short_here_is_not_blamed_on_an_input(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(_: InputCuts) -> object:
        raise OSError(number, os.strerror(number), "/in/a")

    monkeypatch.setattr(InputCuts, "__iter__", listed)
    found = scheduler(tmp_path, tmp_path)
    with pytest.raises(OSError, match=os.strerror(number)):
        found.step(60)
    found.stop()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN])
def test_an_input_that_cannot_be_read_just_now_is_named(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))  # as a read that fails: it knows no name

    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "a.csv").write_text("a\n1\n")
    monkeypatch.setattr(record_scan, "record_starts", bad)
    spec = {
        "entry_script": "e.py",
        "inputs": {"a": {"path": str(inputs), "transformations": ["read_delimited"]}},
        "mini_batch_size": "rows:1",
    }
    folder = tmp_path / "job"
    folder.mkdir()
    found = Scheduler(folder, JobSpec.parse(spec), 1)
    with pytest.raises(InputTrouble, match=r"a\.csv"):
        found.step(60)
    found.stop()


def test_a_file_of_the_job_itself_is_not_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(folder: Path, *_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", str(folder / "inputs.json"))

    monkeypatch.setattr(input_cuts, "save_plans", stale)
    found = scheduler(tmp_path, tmp_path)
    with pytest.raises(OSError, match="Stale"):
        found.step(60)
    found.stop()


def test_a_predecessor_that_ends_its_listing_just_now_has_listed_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look whether it has, and the file that keeps it from going on."""
    paused = ManifestWriter(tmp_path, 1)
    paused.add(encode_files([(b"/in", [b"a"])], 1), 1)
    looks = list[Closing | None]()

    def wakes_behind_the_look(folder: Path) -> Closing | None:
        looks.append(read_closing(folder))
        if len(looks) == 1:
            paused.close(order="sorted")
        return looks[-1]

    monkeypatch.setattr(scheduling, "read_closing", wakes_behind_the_look)
    found = scheduler(tmp_path, tmp_path, term=2)
    assert (looks[0], found.closing, found.mini_batches) == (None, looks[1], 1)
    assert not found.step(60)
    found.stop()
