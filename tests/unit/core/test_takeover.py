"""What a new job takes over from an earlier one: its plan, what it has finished, and the rows of that."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import zlib
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder import takeover
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions, read_outcomes
from parallelrun_core.folder.job_folder import JobFolder, abandoned
from parallelrun_core.folder.manifest import ManifestWriter, read_closing, read_manifest
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.takeover import lost_rows, take_over
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import Failure, LostItems, Outcome
from tests.unit.core.factories import failed, names_in, outcome

MINI_BATCHES = 6
ROWS = b"a row\n"


def record(job_id: str) -> JobRecord:
    return JobRecord(job_id=job_id, submitted=1.0, code="c", spec={"entry_script": "main.py", "inputs": "/data"})


def earlier_job(root: Path, *, closed: bool = True) -> JobFolder:
    """A job with three of six mini-batches done: 0, 2 (at the second attempt of the user) and 5."""
    folder = JobFolder(root, "job_earlier")
    folder.create(record(folder.job_id))
    folder.layout.make_folders()
    for term in (1, 2):  # its first leader died half-way
        manifest = ManifestWriter(folder.path, term)
        for number in range(3):
            name = b"%d.txt" % (3 * term - 3 + number)
            manifest.add(encode_files([(b"/data", [name])], 1), 1)
        if term == 2 and closed:
            manifest.close(order="sorted")
        manifest.stop()
    size = len(ROWS)
    decide(folder, 1, outcome(0, part="a", length=size), failed(1), failed(2), failed(3))
    generation_1 = outcome(2, part="b", length=size, generation=1)
    decide(folder, 2, generation_1, outcome(5, part="a", offset=size, length=size))
    (folder.parts / "a").write_bytes(2 * ROWS)
    (folder.parts / "b").write_bytes(ROWS)
    (folder.parts / "unused").write_bytes(ROWS)
    (folder.path / "inputs.json").write_text("[]")
    (folder.path / "schema.0.json").write_text("{}")
    (folder.path / "shuffled.0").mkdir()
    (folder.path / "shuffled.0" / "rows").write_bytes(ROWS)
    (folder.path / "shuffling.1.1").mkdir()
    return folder


def decide(folder: JobFolder, term: int, *outcomes: Outcome) -> None:
    with closing(DecisionWriter(folder.path, term)) as writer:
        writer.add([*outcomes])


def successor(root: Path, earlier: JobFolder) -> JobFolder:
    folder = JobFolder(root, "job_later")
    assert folder.create_with(record(folder.job_id), partial(take_over, earlier)) == folder.record()
    return folder


def test_what_is_done_is_taken_over_and_nothing_else(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    before = {path: path.read_bytes() for path in earlier.path.rglob("*") if path.is_file()}
    later = successor(tmp_path, earlier)
    assert {path: path.read_bytes() for path in earlier.path.rglob("*") if path.is_file()} == before
    decided = {each.mini_batch: each for each in read_decisions(later.path)}
    assert sorted(decided) == [0, 2, 5]
    assert {(each.status, each.generation) for each in decided.values()} == {("done", 0)}
    assert names_in(later.parts) == ["a", "b"]
    assert [entry.raw for entry in read_manifest(later.path)] == [entry.raw for entry in read_manifest(earlier.path)]
    assert read_closing(later.path) == read_closing(earlier.path)
    assert (later.path / "inputs.json").exists()
    assert (later.path / "schema.0.json").exists()
    assert (later.path / "shuffled.0" / "rows").read_bytes() == ROWS
    assert not (later.path / "shuffling.1.1").exists()
    resumed = later.record().resumed
    assert resumed is not None
    assert (resumed.job_id, resumed.mini_batches, resumed.rows, resumed.bytes) == ("job_earlier", 3, 3, 3 * len(ROWS))


def test_what_has_an_item_that_failed_is_not_taken_over_unless_it_was_retried(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    lost = [LostItems(0, 1, Failure("RUN_EXCEPTION", "no"))]
    with closing(DecisionWriter(earlier.path, 3, retries_items=True)) as writer:
        writer.add([outcome(number, items=2, lost=lost, length=0, generation=2) for number in (1, 3)])
        writer.add([outcome(3, items=2, rows=2, length=0, generation=3, token="node-0/a.2")])
    later = successor(tmp_path, earlier)
    taken = {each.mini_batch: each.rows for each in read_decisions(later.path)}
    assert (sorted(taken), taken[3]) == ([0, 2, 3, 5], 2)


def test_what_workers_have_put_in_the_place_of_a_schema_is_not_taken_over(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    theirs = earlier.layout.schemas_of_workers
    theirs.mkdir()
    (theirs / "schema.1.json").write_text("{}")
    (theirs / "schema.2.json").symlink_to(earlier.layout.record)
    os.mkfifo(theirs / "schema.3.json")
    (theirs / "schema.4.json").mkdir()
    with (theirs / "schema.5.json").open("wb") as large:
        large.truncate(1 << 40)
    with socket.socket(socket.AF_UNIX) as listening:
        folder = os.open(theirs, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{folder}/schema.6.json")
        os.close(folder)
    later = successor(tmp_path, earlier)
    assert [name for name in names_in(later.path) if name.startswith("schema.")] == ["schema.0.json", "schema.1.json"]


def test_the_earlier_job_may_be_deleted_and_taken_over_again(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    later = successor(tmp_path, earlier)
    shutil.rmtree(earlier.path)
    assert (later.parts / "a").read_bytes() == 2 * ROWS
    third = JobFolder(tmp_path, "job_third")
    third.create_with(record(third.job_id), partial(take_over, later))
    assert list(read_outcomes(third.path)) == list(read_outcomes(later.path))


def test_a_plan_that_is_not_complete_goes_on_where_it_ended(tmp_path: Path) -> None:
    later = successor(tmp_path, earlier_job(tmp_path, closed=False))
    assert read_closing(later.path) is None
    leader = ManifestWriter(later.path, 2)
    assert leader.mini_batches == MINI_BATCHES
    leader.stop()


def test_rows_are_copied_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    earlier = earlier_job(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        folder = tmp_path / "folder"
        (folder / "parts").mkdir(parents=True)
        take_over(earlier, folder)
    assert (folder / "parts" / "a").read_bytes() == 2 * ROWS
    assert (folder / "parts" / "a").stat().st_nlink == 1


def flip(path: Path) -> None:
    path.write_bytes(b"X" + path.read_bytes()[1:])


@pytest.mark.parametrize(
    "spoil, taken", [(os.unlink, [2]), (partial(os.truncate, length=len(ROWS)), [0, 2])], ids=["gone", "cut"]
)
def test_what_has_lost_its_rows_is_not_taken_over(tmp_path: Path, spoil: partial[None], taken: list[int]) -> None:
    earlier = earlier_job(tmp_path)
    spoil(earlier.parts / "a")
    later = successor(tmp_path, earlier)
    assert [each.mini_batch for each in read_decisions(later.path)] == taken
    resumed = later.record().resumed
    assert resumed is not None
    assert resumed.mini_batches == len(taken)


def test_rows_that_are_not_what_was_committed_are_found(tmp_path: Path) -> None:
    check_lost_rows(tmp_path)


def check_lost_rows(root: Path) -> None:
    earlier = earlier_job(root)
    crc = zlib.crc32(ROWS)
    decide(earlier, 3, outcome(1, part="c", length=len(ROWS), crc=crc, generation=1))
    decide(earlier, 4, outcome(3, part="d", length=len(ROWS), crc=crc, generation=1))
    for name in "cd":
        (earlier.parts / name).write_bytes(ROWS)
    flip(earlier.parts / "d")
    lost = {rows.mini_batch for rows in lost_rows(successor(root, earlier))}
    assert 3 in lost
    assert 1 not in lost


def test_rows_that_the_disk_refuses_to_give_are_left_for_the_concatenator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_rows(_: Path, place: Outcome) -> bool:
        if place.part == "a":
            raise OSError(errno.EIO, "Input/output error")
        return False

    later = successor(tmp_path, earlier_job(tmp_path))
    monkeypatch.setattr(takeover, "has_rows", has_rows)
    assert [rows.mini_batch for rows in lost_rows(later)] == [2]


def test_a_decision_about_nothing_is_not_believed(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    decide(earlier, 3, outcome(MINI_BATCHES, part="a"))
    with pytest.raises(CorruptLog, match="not in the manifest"):
        successor(tmp_path, earlier)


def test_a_process_that_dies_while_it_takes_over_leaves_no_job(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    left: list[Path] = []

    def die(folder: Path) -> None:
        take_over(earlier, folder)
        left.extend(abandoned(tmp_path))
        raise KeyboardInterrupt

    later = JobFolder(tmp_path, "job_later")
    with pytest.raises(KeyboardInterrupt):
        later.create_with(record(later.job_id), die)  # type: ignore[arg-type]
    assert not later.path.exists()
    assert len(left) == 1, "what a process that is killed leaves behind can be found and removed"


def test_who_comes_second_finds_the_job_of_who_came_first(tmp_path: Path) -> None:
    earlier = earlier_job(tmp_path)
    successor(tmp_path, earlier)
    with pytest.raises(FileExistsError):
        successor(tmp_path, earlier)
    assert names_in(tmp_path / "jobs") == ["job_earlier", "job_later"]
