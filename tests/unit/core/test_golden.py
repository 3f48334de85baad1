"""What earlier releases have written is read; what a newer one has written is refused with words, and left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.errors import CorruptLog, NewerSchema
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import read_closing, read_manifest
from parallelrun_core.folder.record_log import RecordWriter, read_records
from parallelrun_core.folder.term_log import Header, file_of, read_term_log
from parallelrun_core.wire.message import decode, paths_of
from parallelrun_core.wire.outcome import decode_list
from tests.golden.build import SESSION, rows
from tests.golden.opened import RELEASES, opened

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture
def folder(release: str, tmp_path: Path) -> JobFolder:
    return opened(release, tmp_path)


def test_a_job_of_an_earlier_release_is_read(folder: JobFolder) -> None:
    record = folder.record()
    spec = record.job_spec()
    assert (spec.entry_script, spec.data_paths(), spec.run_max_try) == ("entry.py", ["/golden"], 1)
    assert (folder.code(record) / "entry.py").exists()
    assert folder.result() is None
    assert folder.generation() == 0
    paths = [paths_of(decode(entry.raw)).split(b"\0") for entry in read_manifest(folder.path)]
    assert paths == [[b"/golden/file-%d.txt" % (2 * n), b"/golden/file-%d.txt" % (2 * n + 1)] for n in range(6)]
    closing = read_closing(folder.path)
    assert closing is not None
    assert (closing.mini_batches, closing.items, closing.order) == (6, 12, "sorted")


def test_its_decisions_and_journals_are_read_and_added_to(folder: JobFolder) -> None:
    found = {outcome.mini_batch: outcome.status for outcome in read_decisions(folder.path)}
    assert found == {0: "done", 1: "failed", 3: "done"}
    journal = [each for _, raw in read_records(folder.journals / SESSION) for each in decode_list(raw)]
    assert [each.mini_batch for each in journal] == [0, 1, 3]
    log = DecisionWriter(folder.path, 3)
    again = msgspec.structs.replace(journal[0], mini_batch=2)
    assert log.add([journal[0], again]) == [again]
    log.sync()
    log.close()
    assert {outcome.mini_batch for outcome in read_decisions(folder.path)} == {0, 1, 2, 3}


def test_its_rows_are_put_together(folder: JobFolder) -> None:
    target = folder.outputs / "out.txt"
    merge(SegmentTable(folder.path).in_order(), folder.parts, str(target), lambda _: None)
    assert target.read_bytes() == rows(0) + rows(3)


def newer_json(name: str) -> Callable[[JobFolder], object]:
    def write(folder: JobFolder) -> None:
        path = folder.path / name
        fields = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**fields, "schema": 2, "job_id": ["another", "type"]}))

    return write


def newer_log(folder: JobFolder) -> None:
    writer = RecordWriter(file_of(folder.path, "decisions", 9))
    writer.append(msgspec.json.encode({**msgspec.to_builtins(Header(term=9, accepted={})), "schema": 4}))
    writer.close()


def read_log(folder: JobFolder) -> object:
    return list(read_term_log(folder.path, "decisions"))


def test_fields_that_a_newer_release_has_added_are_passed_over(folder: JobFolder) -> None:
    path = folder.path / "job.json"
    record = json.loads(path.read_text())
    ours = folder.record().job_spec()
    record["new"] = record["spec"]["new"] = {"of": "the next release"}
    for given in record["spec"]["inputs"].values():
        given["new"] = 1
    path.write_text(json.dumps(record))
    assert folder.record().job_spec() == ours


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"schema": "1"}', b'{"code": "\xff"}', b"[" * 100_000])
def test_what_is_damaged_is_told_with_its_path(folder: JobFolder, damaged: bytes) -> None:
    for name, read in (("job.json", JobFolder.record), ("result.json", JobFolder.result)):
        (folder.path / name).write_bytes(damaged)
        with pytest.raises(CorruptLog, match=rf"{name} can't be read"):
            read(folder)


def test_a_setting_that_can_not_be_understood_is_named_without_its_value(folder: JobFolder) -> None:
    path = folder.path / "job.json"
    record = json.loads(path.read_text())
    record["spec"]["environment_variables"] = ["secret"]
    path.write_text(json.dumps(record))
    with pytest.raises(CorruptLog, match=r"can't be read by this release: environment_variables\.$"):
        folder.record().job_spec()


@pytest.mark.parametrize(
    "make, read",
    [
        (newer_json("job.json"), JobFolder.record),
        (newer_json("result.json"), JobFolder.result),
        (newer_json("reopened.1.json"), JobFolder.reopenings),
        (newer_log, read_log),
    ],
    ids=["job", "result", "reopened", "log"],
)
def test_what_a_newer_release_has_written_is_refused_with_words(
    folder: JobFolder, make: Callable[[JobFolder], object], read: Callable[[JobFolder], object]
) -> None:
    make(folder)
    with pytest.raises(NewerSchema, match=r"has schema [24]; this release reads up to [13]\. Update this service"):
        read(folder)
