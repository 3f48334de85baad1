"""Which candidates are taken from journals when Redis has forgotten a job."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.wire.outcome import Outcome, encode_all
from parallelrun_master.ledger.journals import finished
from tests.unit.core.factories import failed, outcome


def candidate(mini_batch: int, **fields: Any) -> Outcome:
    return outcome(mini_batch, **{"part": "part", "crc": zlib.crc32(b"rows\n"), **fields})


def test_what_is_done_and_has_its_rows_and_no_decision_is_taken(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, "job")
    folder.parts.mkdir(parents=True)
    folder.journals.mkdir()
    (folder.parts / "part").write_bytes(b"rows\nrows\n")
    journal = RecordWriter(folder.journals / "session")
    journal.append(encode_all([
        candidate(0), candidate(1, offset=5), candidate(2, offset=6), candidate(3, crc=7), candidate(4, part="gone"),
    ]))  # fmt: skip
    journal.append(
        encode_all([failed(5), failed(6, status="retry"), candidate(7, generation=1), candidate(8, length=0)])
    )
    journal.sync()
    journal.close()
    with (folder.journals / "session").open("ab") as file:
        file.write(b"a record that the agent's death has cut")
    decided = Decided()
    decided.accept(outcome(0))
    assert [each.mini_batch for each in finished(folder, decided, 0)] == [1, 8]
    assert [each.mini_batch for each in finished(folder, decided, 1)] == [7]
