"""Makes the golden folder of a release: a job that it left half done. Run it once, with the code of that release:

    PYTHONPATH=<release>/shared python tests/golden/build.py tests/golden/<name>

The folder then stays as it is: every later release must read it and go on with it.
"""

from __future__ import annotations

import shutil
import sys
import zlib
from pathlib import Path

from parallelrun_core.code import snapshots
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import ManifestWriter
from parallelrun_core.folder.record_log import RecordWriter
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.layout import code_store
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.message import encode_files
from parallelrun_core.wire.outcome import Failure, Outcome, encode, encode_list

JOB = "job_00000golden0release1"
SESSION = "node000-0a1b2c3d"
SCRIPT = "import os\ndef run(mini_batch):\n    return [os.path.basename(path) for path in mini_batch]\n"


def rows(mini_batch: int) -> bytes:
    """What run() returns for a mini-batch of two files."""
    return b"file-%d.txt\nfile-%d.txt\n" % (2 * mini_batch, 2 * mini_batch + 1)


def outcome(mini_batch: int, offset: int, failure: Failure | None = None) -> Outcome:
    """A decision of that time."""
    data = b"" if failure else rows(mini_batch)
    return Outcome(
        mini_batch=mini_batch, generation=0, status="failed" if failure else "done",
        token=f"{SESSION}/n.{mini_batch}", tries=1, node="node000", process="process000",
        part=f"{SESSION}.process000" if data else "", offset=offset, length=len(data), crc=zlib.crc32(data),
        items=2, rows=0 if failure else 2, started=1.0, elapsed_s=0.1, run_s=0.1, process_s=0.1, failure=failure,
    )  # fmt: skip


def build(root: Path) -> None:
    """Six mini-batches: 0 and 3 are done, 1 has failed; 3 is in the log of a second term; 2, 4 and 5 are open."""
    code = root / "script"
    code.mkdir(parents=True)
    (code / "entry.py").write_text(SCRIPT)
    spec = JobSpec.parse({"entry_script": "entry.py", "inputs": "/golden", "mini_batch_size": 2, "run_max_try": 1})
    folder = JobFolder(root, JOB)
    name = snapshots.snapshot_folder(code, code_store(root))
    folder.create(JobRecord(job_id=JOB, submitted=1.0, code=name, spec=spec.model_dump(mode="json")))
    folder.layout.make_folders()
    shutil.rmtree(code)
    manifest = ManifestWriter(folder.path, 1)
    for mini_batch in range(6):
        names = [b"file-%d.txt" % (2 * mini_batch), b"file-%d.txt" % (2 * mini_batch + 1)]
        manifest.add(encode_files([(b"/golden", names)], 2), 2)
    manifest.close(order="sorted")
    part = folder.parts / f"{SESSION}.process000"
    part.write_bytes(rows(3) + rows(0))
    first = [outcome(0, len(rows(3))), outcome(1, 0, Failure("RUN_EXCEPTION", "ValueError: bad", "Traceback"))]
    second = [outcome(3, 0)]
    journal = RecordWriter(folder.journals / SESSION)
    journal.append(encode_list([encode(each) for each in [*first, *second]]))
    journal.sync()
    journal.close()
    for term, outcomes in ((1, first), (2, [*second, outcome(0, 0)])):  # the last one came too late
        log = DecisionWriter(folder.path, term)
        log.add(outcomes)
        log.sync()
        log.close()


if __name__ == "__main__":
    build(Path(sys.argv[1]))
