"""The names of everything below a job's folder (job_folder.py says what it is), and of what is below its `logs`.

A log that only one module writes has its own name there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from parallelrun_core.ids import is_job_id

RECORD: Final = "job.json"
DELETED: Final = "deleted.json"
"""The mark of a deletion (see `retention/marks.py`)."""
INPUTS: Final = "inputs.json"
PARTS: Final = "parts"
FAILED_ITEMS: Final = "failed_items.csv"
"""Of its logs."""
JOURNALS: Final = "journals"
KEYS: Final = "keys"
OUTPUTS: Final = "outputs"
LOGS: Final = "logs"
UPLOADS: Final = "uploads"
STEPS: Final = "steps"
RETRIES: Final = "retries"
"""The log of tries that failed and were followed by others."""

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
"""Of what only the services need. An agent whose workers are other users opens a job's folder to those of that job."""
_WAY_THROUGH: Final = 0o711
_OF_GROUPING: Final = ("shuffled.", "shuffling.", "removed.shuffling.")
_FIRST_OUTBOXES: Final = ("notices", "traces")
_OUTBOX: Final = "outbox-"
_RESULT: Final = re.compile(r"result.*\.json")
_GENERATION: Final = re.compile(r"(?:reopened|result)\.([0-9]+)\.json")


class _Below:
    """A path below the folder of whoever has this among its attributes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: Layout | Logs, _: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below a folder that is a job's, or becomes one."""

    path: Path

    record = _Below(RECORD)
    inputs = _Below(INPUTS)
    parts = _Below(PARTS)
    journals = _Below(JOURNALS)
    outputs = _Below(OUTPUTS)
    logs = _Below(LOGS)
    keys = _Below(KEYS)
    """The keys of the job's sessions; there with the first of them."""
    steps = _Below(STEPS)
    """The decisions about the steps of a pipeline."""
    tracked_run = _Below("mlflow.json")
    """The job's run of MLflow."""
    schemas_of_workers = _Below("schemas")
    """The folder for schemas by workers that can't write to the job's folder."""

    def make_folders(self) -> None:
        """Create the folders that nodes write into, unless they are there: durable with the next sync of their own."""
        for each in (self.parts, self.journals):
            each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        self.outputs.mkdir(exist_ok=True)  # the folder around it closes it

    def part(self, session: str, process: str) -> Path:
        return self.parts / f"{session}.{process}"

    def schema(self, number: int | str) -> Path:
        """The columns of an input."""
        return self.path / f"schema.{number}.json"

    @property
    def schemas(self) -> Iterator[Path]:
        yield from self.path.glob("schema.*.json")
        yield from self.schemas_of_workers.glob("schema.*.json")

    def warnings(self, term: int) -> Path:
        """The file with what a leader has found in the data that a user may not want, while it listed and cut them."""
        return self.path / f"warnings.{term}.json"

    @property
    def all_warnings(self) -> Iterator[Path]:
        """The warnings of all terms that have found something."""
        return self.path.glob("warnings.*.json")

    def cancel(self, generation: int) -> Path:
        return self.path / f"cancel.{generation}.json"

    def reopening(self, generation: int) -> Path:
        return self.path / f"reopened.{generation}.json"

    def result(self, generation: int) -> Path:
        return self.path / (f"result.{generation}.json" if generation else "result.json")

    @property
    def results(self) -> Iterator[Path]:
        return (self.path / name for name in self._names() if _RESULT.fullmatch(name))

    def generation(self) -> int:
        """Return the last one that has begun or ended; 0: the job was never reopened."""
        matches = map(_GENERATION.fullmatch, self._names())
        return max((int(match[1]) for match in matches if match), default=0)

    def _names(self) -> list[str]:
        """Return what is in the folder; a pipeline asks for it again and again, also before it is there."""
        try:
            return os.listdir(self.path)  # noqa: PTH208 - no path for each
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    # Rows that are grouped by keys

    def grouped(self, number: int) -> Path:
        """The folder of the grouped rows of an input; there once they are whole."""
        return self.path / f"shuffled.{number}"

    def grouped_rows(self, number: int) -> Path:
        return self.grouped(number) / "rows"

    def groups(self, number: int) -> Path:
        """The file that says which range of the grouped rows is which group."""
        return self.grouped(number) / "groups.jsonl"

    def grouping_warnings(self, number: int) -> Path:
        """The file with the warnings about the rows that were grouped."""
        return self.grouped(number) / "warnings.json"

    def grouping(self, number: int, term: int | str) -> Path:
        """The folder in which a leader groups them."""
        return self.path / f"shuffling.{number}.{term}"

    def broken_off(self, number: int, until: int) -> Iterator[Path]:
        """The folders in which leaders up to a term have begun to group the rows of an input."""
        for path in self.path.glob(self.grouping(number, "*").name):
            if int(path.suffix[1:]) <= until:
                yield path

    @staticmethod
    def removed(grouping: Path) -> Path:
        """The name of such a folder while it is removed."""
        return grouping.with_name(f"removed.{grouping.name}")

    @property
    def all_grouped(self) -> Iterator[Path]:
        """The folders with grouped rows that are there."""
        return self.path.glob("shuffled.*")

    @property
    def all_of_grouping(self) -> Iterator[Path]:
        """All folders that grouping rows has left, whole or not."""
        return (self.path / name for name in self._names() if name.startswith(_OF_GROUPING))


@dataclass(frozen=True, slots=True)
class Logs:
    """The paths below a job's `logs`, named as in the reference."""

    path: Path

    user = _Below("user")
    sys = _Below("sys")
    job_report = _Below("sys/job_report")
    failed_items = _Below(FAILED_ITEMS)
    """The table of the items that have failed for good."""
    warnings = _Below("warnings.txt")
    """Warnings about the data: a line for each kind, column and file."""
    storage = _Below("sys/storage")
    """The calls of object stores; a file for each process that made some."""
    stacks = _Below("sys/stacks")
    """The stacks of workers when somebody asked for them; a file for each node."""
    image_build = _Below("sys/image.txt")
    """The log of the build of an image for the job's nodes, if that was done while it waited."""
    user_errors = _Below("user/error.txt")
    user_metrics = _Below("user/metrics")
    """The metrics that scripts log: a folder for each node, or for each step of a pipeline (metrics.py)."""
    user_artifacts = _Below("user/artifacts")
    """The artifacts of MLflow that scripts log: a folder for each node, with one for each process."""
    user_memory = _Below("user/remembered")
    """The values that scripts remember for later tries: a folder for each node, and `.earlier` of an earlier job."""

    def metrics(self, begun: str) -> Path:
        return self.sys / "metrics" / begun

    def perf(self, node: str) -> Path:
        return self.sys / "perf" / node

    def of_node(self, node: str) -> Path:
        """The folder of what workers of a node log, and what their processes print."""
        return self.sys / "node" / node

    def errors_of_node(self, node: str) -> Path:
        """The warnings and errors among what the workers of a node log."""
        return self.sys / "error" / "node" / node

    def user_error(self, node: str, process: str) -> Path:
        return self.user / "error" / node / f"{process}.txt"

    def stdout(self, node: str, process: str) -> Path:
        return self.user / "stdout" / node / f"{process}.stdout.txt"

    def stderr(self, node: str, process: str) -> Path:
        return self.user / "stderr" / node / f"{process}.stderr.txt"

    def script_log(self, node: str) -> Path:
        """The folder of what `EntryScript().logger` writes on a node."""
        return self.user / "entry_script_log" / node

    def script_files(self, node: str) -> Path:
        """The folder of what scripts write below `logs` of their working folders; in it, a folder for each process."""
        return self.user / "files" / node


@lru_cache(maxsize=8)
def jobs_of(root: Path) -> Path:
    return root / "jobs"


def make_store(folder: Path) -> None:
    """Create the folder of all jobs, or of all snapshots, with those above it: who doesn't own it finds only what he
    knows the name of, and can do with that what its own mode allows.
    """
    folder.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    folder.mkdir(mode=_WAY_THROUGH, exist_ok=True)


def listed(folder: Path) -> list[str]:
    """The names in a folder, in any order; none if there is no such folder."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - no path for each
    except (FileNotFoundError, NotADirectoryError):
        return []


def job_ids(root: Path) -> list[str]:
    """The ids of all jobs, oldest first: by their folders, whose names sort by time. Some may have no record yet."""
    return sorted(filter(is_job_id, listed(jobs_of(root))))


def key_claims(root: Path) -> Path:
    """The folder of what was submitted with an idempotency key."""
    return root / "keys"


def uploads_of(root: Path) -> Path:
    """The folder of what clients have uploaded for jobs to read."""
    return root / UPLOADS


def blobstore_of(root: Path) -> Path:
    """The folder of the default datastore, which Azure ML calls `workspaceblobstore`: it is the users', who read and
    write there. What clients upload, and what jobs write without naming a path, is elsewhere."""
    return root / "blobstore"


def finished_steps(root: Path) -> Path:
    """The folder of the steps of pipelines that have completed, by what they were made of."""
    return root / "reuse"


@lru_cache(maxsize=8)
def code_store(root: Path) -> Path:
    """The folder of the snapshots of the users' code."""
    return root / "code"


def outbox_of(root: Path, destination: str) -> Path:
    """The folder of the ends of jobs that are owed to a destination; there with the first of them."""
    return root / (destination if destination in _FIRST_OUTBOXES else f"{_OUTBOX}{destination}")


def outboxes_of(root: Path) -> list[Path]:
    """The folders of the ends of jobs that are owed, to whatever destination."""
    return [path for path in root.glob("*") if is_outbox(path.name)]


def is_outbox(name: str) -> bool:
    """Return whether a folder of the root folder with this name has ends of jobs that are owed."""
    return name in _FIRST_OUTBOXES or name.startswith(_OUTBOX)


def schedules_of(root: Path) -> Path:
    """The folder of all schedules; there with the first of them."""
    return root / "schedules"


def retention_of(root: Path) -> Path:
    """The folder of what sweeps remember, and of the lock that lets one of them work at a time."""
    return root / "retention"


def asset_store(root: Path) -> Path:
    """The folder of the assets, by type and name."""
    return root / "assets"


def asset_files(root: Path) -> Path:
    """The folder of the files of assets, which jobs may read; none of it ever changes."""
    return root / "asset_files"
