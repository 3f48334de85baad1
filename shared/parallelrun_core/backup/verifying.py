"""The check of a root folder: every document, log, segment, output and snapshot is read and compared with its checksum.

It may run beside the cluster: what is written meanwhile at the end of a log is not yet part of it.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun_core.code.stored import damaged_files
from parallelrun_core.documents.schema import RETRIED_ITEMS, decode
from parallelrun_core.errors import CorruptLog, NewerSchema, ParallelRunError
from parallelrun_core.folder.damage import Damage
from parallelrun_core.folder.decisions import read_decisions, read_outcomes
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.manifest import read_length
from parallelrun_core.folder.record_log import RecordReader
from parallelrun_core.folder.records import JobResult
from parallelrun_core.folder.takeover import lost_rows
from parallelrun_core.layout import asset_files, code_store, job_ids, listed
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.retention.marks import Marks
from parallelrun_core.retention.references import documents_of
from parallelrun_core.storage.location import is_url
from parallelrun_core.wire.states import JobState

_LOG: Final = re.compile(r"(?:manifest|decisions|retries)\.\d+")
_SNAPSHOT: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Defect:
    """Something that is not what was written."""

    path: str
    """Below the root folder."""
    problem: str


@dataclass(slots=True)
class Verification:
    """The findings about a root folder, and how much was read."""

    root: Path
    documents: int = 0
    logs: int = 0
    segments: int = 0
    """Rows of mini-batches, each with a crc."""
    outputs: int = 0
    snapshots: int = 0
    findings: list[Defect] = field(default_factory=list)

    def run(self) -> Verification:
        """Read everything. What can't be read is a finding, and not an error."""
        for path in documents_of(self.root):
            if path.suffix == ".json":
                self._check_document(path)
        for job_id in job_ids(self.root):
            with suppress(FileNotFoundError):  # removed meanwhile
                self._check_job(JobFolder(self.root, job_id))
        for store in (code_store(self.root), asset_files(self.root)):
            for path in [store / name for name in sorted(listed(store)) if _SNAPSHOT.fullmatch(name)]:
                if path.is_dir():
                    self.snapshots += 1
                    self._check_snapshot(path)
        return self

    def _add(self, path: Path | str, problem: str) -> None:
        path = Path(path)
        name = str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)
        self.findings.append(Defect(name, problem))

    def _check_document(self, path: Path) -> None:
        self.documents += 1
        try:
            raw = path.read_bytes()
            if isinstance(msgspec.json.decode(raw), dict):
                decode(raw, dict[str, Any], path, reads_up_to=RETRIED_ITEMS)
        except FileNotFoundError:
            pass
        except (CorruptLog, NewerSchema, OSError, msgspec.DecodeError) as error:
            self._add(path, str(error))

    def _check_job(self, folder: JobFolder) -> None:
        if not folder.has_record:
            self._add(folder.path, "it has no job.json: it was never accepted, or has lost it")
        for path in (*sorted(folder.path.glob("*.json")), *sorted(folder.layout.steps.glob("*.json"))):
            self._check_document(path)
        journals = sorted(listed(folder.journals))
        for path in [folder.path / name for name in sorted(listed(folder.path)) if _LOG.fullmatch(name)]:
            self._check_log(path)
        for name in journals:
            self._check_log(folder.journals / name)
        try:
            load_plans(folder.path)
            self._check_rows(folder)
        except (ParallelRunError, OSError) as error:
            self._add(folder.path, str(error))

    def _check_log(self, path: Path) -> None:
        self.logs += 1

        def on_damage(damage: Damage) -> None:
            self._add(path, f"bytes {damage.start:,} to {damage.end:,} are not what was written")

        reader = RecordReader(path, on_damage=on_damage)
        try:
            while reader.read() is not None:
                pass
        except OSError as error:
            self._add(path, str(error))
        finally:
            reader.close()

    def _check_rows(self, folder: JobFolder) -> None:
        result = folder.result() if folder.has_record else None
        is_stripped = Marks(folder).lacks_parts()
        decided = 0

        def on_damage(damage: Damage) -> None:
            self._add(damage.path, f"bytes {damage.start:,} to {damage.end:,} are not what was written")

        for _ in read_outcomes(folder.path, on_damage=on_damage):
            pass
        planned, closing = read_length(folder.path)
        for outcome in read_decisions(folder.path):
            decided += 1
            self.segments += bool(outcome.length) and not is_stripped
        if not is_stripped:
            for lost in lost_rows(folder):
                self._add(folder.parts / lost.part, f"the rows of mini-batch {lost.mini_batch} have another crc")
        if result is None or result.state is not JobState.COMPLETED:
            return
        if planned and (closing is None or decided < planned):
            self._add(folder.path, f"{decided:,} of {planned:,} mini-batches have a decision, though it has completed")
        self._check_output(folder, result)

    def _check_output(self, folder: JobFolder, result: JobResult) -> None:
        if not result.output or is_url(result.output) or not result.output_sha256:
            return
        path = _place_of(result.output, folder)
        if not path.exists():
            if path.is_relative_to(self.root):
                self._add(path, "the output is gone")
            return
        self.outputs += 1
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != result.output_sha256:
            self._add(path, "the output is not what the job has made")

    def _check_snapshot(self, path: Path) -> None:
        try:
            for name in damaged_files(path):
                self._add(path / name, "it is not what was submitted")
        except OSError as error:
            self._add(path, str(error))


def _place_of(output: str, folder: JobFolder) -> Path:
    """Return where an output of a job is: one below the job's folder belongs to the root that is read, which may be a
    backup, and not to the one where the job has run."""
    _, is_below, name = output.rpartition(f"/jobs/{folder.job_id}/")
    return folder.path / name if is_below else Path(output)
