"""Control of a job that has not ended: whether it is paused, and a priority other than the submitted one.

It stands in a small file of the job's folder, and Redis is told afterwards. What Redis forgets, the leader tells again.
A pipeline's holds for the jobs of its steps that have none of their own.
"""

from __future__ import annotations

from typing import Final

import msgspec

from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_durably
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.layout import PRIVATE_FILE
from parallelrun_core.wire.states import Orders, Priority

_FILE: Final = "control.json"


class Control(msgspec.Struct, kw_only=True, frozen=True):
    """Decisions of people about a job since it was submitted."""

    schema: int = SCHEMA
    paused: bool = False
    paused_by: str = ""
    """The person; empty: whoever runs the server."""
    paused_by_admin: bool = False
    """True if only an admin may let it go on."""
    paused_at: float = 0.0
    """Seconds since the epoch."""
    priority: Priority | None = None
    """None: the submitted one."""
    prioritized_by_admin: bool = False
    """True if only an admin may change the priority again."""

    @property
    def orders(self) -> Orders:
        """Return it as Redis has it."""
        return Orders(self.paused, self.priority or "")


NO_CONTROL: Final = Control()


def read_control(folder: JobFolder) -> Control:
    """Return what was decided about this job itself; a damaged file counts as none. Raises OSError, NewerSchema."""
    path = folder.path / _FILE
    try:
        return decode(path.read_bytes(), Control, path)
    except (FileNotFoundError, NotADirectoryError, CorruptLog):
        return NO_CONTROL


def effective_control(folder: JobFolder, record: JobRecord) -> Control:
    """Return what holds for a job: its own, or else that of the pipeline that it is a step of."""
    control = read_control(folder)
    if control != NO_CONTROL or record.parent is None:
        return control
    return read_control(JobFolder(folder.root, record.outermost))


def write_control(folder: JobFolder, control: Control) -> None:
    """Record what was decided, durably. Raises OSError."""
    replace_durably(folder.path / _FILE, encode(control), mode=PRIVATE_FILE)
