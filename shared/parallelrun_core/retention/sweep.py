"""Sweeps that prune a root folder: mark what is needed, notify, rename, check again, remove.

    1  what an earlier sweep has set aside and not removed takes part in 5 and 6
    2  measure all jobs, read all documents, and plan
    3  write and withdraw notices; strip completed jobs of parts and logs, each marked so before
    4  set aside what goes: from now on nobody finds it
    5  wait, so that whoever has found it before step 4 can finish writing what refers to it; then read everything
       again, and put back what is needed after all
    6  remove what is left

A process may be killed between any two of these. What was set aside is judged again by the next sweep; nothing is
removed that was not judged since it was set aside. One process sweeps at a time, by a lock on the volume.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.answers.retention import RemovedKind
from parallelrun_core.durable_files import sync_folder
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Layout,
    asset_files,
    code_store,
    jobs_of,
    listed,
    retention_of,
)
from parallelrun_core.retention.inventory import Inventory, others_going
from parallelrun_core.retention.marks import Marks
from parallelrun_core.retention.measuring import Measured, live_logs_of, parts_of, size_of
from parallelrun_core.retention.policy import DAY_S, LEAST_AGE_S, JobFacts, SweepPlan, Unit, plan_jobs, units_of
from parallelrun_core.retention.references import References
from parallelrun_core.retention.report import SweepReport, write_report
from parallelrun_core.retention.rules import Rules, to_record
from parallelrun_core.retention.trash import discard, list_set_aside, name_of, put_back, set_aside
from parallelrun_core.service import failpoints
from parallelrun_core.service.telemetry import logger

SETTLE_S: Final = 5.0
_LOCK: Final = ".lock"


@dataclass(slots=True)
class _State:
    """The state of a root folder, as a sweep has read it."""

    facts: list[JobFacts]
    references: References

    @property
    def hashes(self) -> set[str]:
        return self.references.hashes.union(*(job.code for job in self.facts))


@dataclass(slots=True)
class Sweeper:
    """Sweeps over one root folder.

    Args:
        clock: seconds since the epoch.
        settle_s: the pause between setting aside and removing.
    """

    root: Path
    rules: Rules
    clock: Callable[[], float] = time.time
    settle_s: float = SETTLE_S
    pause: Callable[[float], object] = time.sleep
    measured: Measured = field(init=False)

    def __post_init__(self) -> None:
        self.measured = Measured(self.root, retention_of(self.root))

    def plan(self, *, is_urgent: bool = False) -> SweepReport:
        """Return what a sweep would do now. Changes nothing, and needs no lock."""
        state, now = self._see(), self.clock()
        jobs = self._plan_jobs(state, now, is_urgent=is_urgent)
        inventory = others_going(self.rules, state.references, hashes=state.hashes, jobs=state.facts, now=now)
        return self._report(state.facts, jobs, inventory, now, is_applied=False)

    def run(self, *, is_urgent: bool = False) -> SweepReport | None:
        """Sweep once; returns None if another process sweeps.

        Args:
            is_urgent: remove what users have deleted now, though it could still be restored.

        Raises:
            OSError: the volume can't be read or written; the next sweep goes on.
        """
        folder = retention_of(self.root)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        with locked(folder) as is_held:
            if not is_held:
                return None
            began = time.monotonic()
            report = self._sweep(is_urgent=is_urgent)
            report = msgspec.structs.replace(report, took_s=round(time.monotonic() - began, 3))
            write_report(self.root, report)
            self.measured.remember()
            return report

    def _sweep(self, *, is_urgent: bool) -> SweepReport:
        state, now = self._see(), self.clock()
        jobs = self._plan_jobs(state, now, is_urgent=is_urgent)
        inventory = others_going(self.rules, state.references, hashes=state.hashes, jobs=state.facts, now=now)
        self._notify(state.facts, jobs, now)
        self._strip(jobs, now)
        for unit in jobs.remove:
            self._set_unit_aside(unit, now)
        for path in inventory.folders:
            set_aside(path)
        report = self._report(state.facts, jobs, inventory, now, is_applied=True)
        not_removed = self._remove(inventory, now) if self._all_set_aside() or inventory.files else 0
        return msgspec.structs.replace(report, not_removed=not_removed)

    def _see(self) -> _State:
        facts = self.measured.facts()
        references = References(self.root)
        references.read_documents()
        for job in facts:
            if not job.ended:
                with suppress(FileNotFoundError):
                    references.add_running(JobFolder(self.root, job.job_id).layout.record.read_bytes())
        return _State(facts, references)

    def _plan_jobs(self, state: _State, now: float, *, is_urgent: bool) -> SweepPlan:
        return plan_jobs(state.facts, self.rules, now=now, named=state.references.jobs, is_urgent=is_urgent)

    def _notify(self, facts: Sequence[JobFacts], jobs: SweepPlan, now: float) -> None:
        members = {unit.name: unit.members for unit in units_of(facts).values()}
        for notice in jobs.notices:
            for job_id in members[notice.unit]:
                with suppress(FileNotFoundError):
                    Marks(JobFolder(self.root, job_id)).notify(now, notice.why, notice.removed_at)
            failpoints.reach("retention.noticed")
        for name in jobs.withdrawn:
            for job_id in members[name]:
                Marks(JobFolder(self.root, job_id)).withdraw_notice()

    def _strip(self, jobs: SweepPlan, now: float) -> None:
        for kind, job_ids in (("parts", jobs.strip_parts), ("logs", jobs.strip_logs)):
            for job_id in job_ids:
                folder = JobFolder(self.root, job_id)
                with suppress(FileNotFoundError):
                    Marks(folder).strip(now, kind)
                    failpoints.reach("retention.marked")
                    if not folder.has_ended:  # reopened since it was measured: it needs them again
                        Marks(folder).unstrip()
                        continue
                    for path in parts_of(folder, folder.result()) if kind == "parts" else live_logs_of(folder):
                        _empty(path)

    def _set_unit_aside(self, unit: Unit, now: float) -> None:
        """Take a unit away, unless somebody has restored it since it was measured."""
        if not unit.is_orphaned and not Marks(JobFolder(self.root, unit.members[0])).may_go:
            return
        for job_id in unit.members:
            folder = JobFolder(self.root, job_id)
            with suppress(FileNotFoundError):
                if not Marks(folder).may_go:  # whoever deleted the pipeline was killed before it came to its steps
                    Marks(folder).delete(now)
            set_aside(folder.path)
            failpoints.reach("retention.set_aside")

    def _all_set_aside(self) -> list[Path]:
        stores = (jobs_of(self.root), code_store(self.root), asset_files(self.root))
        return sorted(path for store in stores for path in list_set_aside(store))

    def _remove(self, inventory: Inventory, now: float) -> int:
        """Put back what is needed after all, and remove the rest; returns how many can't be removed."""
        self.pause(self.settle_s)
        state = self._see()
        needed = {job_id for job in state.facts for job_id in job.names} | state.references.jobs.keys()
        hashes, not_removed = state.hashes, 0
        for aside in self._all_set_aside():
            old = name_of(aside)
            if old.parent == jobs_of(self.root):
                is_needed = old.name in needed or not Marks(aside).may_go or not _has_ended(aside)
            else:
                is_needed = old.name in hashes or _is_fresh(old, now)
            if is_needed and put_back(aside):
                logger().info("retention_put_back", name=old.name)
                continue
            failpoints.reach("retention.judged")
            not_removed += not discard(aside)
            if old.parent != jobs_of(self.root) and not old.exists():
                old.with_name(f"{old.name}.files").unlink(missing_ok=True)
            failpoints.reach("retention.removed")
        for path in inventory.files:
            if not state.references.names_file(path):
                path.unlink(missing_ok=True)
        return not_removed

    def _report(
        self, facts: Sequence[JobFacts], jobs: SweepPlan, inventory: Inventory, now: float, *, is_applied: bool
    ) -> SweepReport:
        by_id = {job.job_id: job for job in facts}
        going = [job_id for unit in jobs.remove for job_id in unit.members]
        removed = {
            "jobs": (len(going), sum(unit.bytes for unit in jobs.remove)),
            "parts": (len(jobs.strip_parts), sum(by_id[job_id].parts_bytes for job_id in jobs.strip_parts)),
            "logs": (len(jobs.strip_logs), sum(by_id[job_id].logs_bytes for job_id in jobs.strip_logs)),
            **{kind: (len(paths), sum(map(size_of_any, paths))) for kind, paths in inventory.by_kind()},
        }
        notices = {notice.unit: notice.removed_at for notice in jobs.notices} | {
            unit.name: unit.noticed + self.rules.keep_notice_days * DAY_S
            for unit in units_of(facts).values()
            if unit.noticed and unit.name not in jobs.withdrawn and unit not in jobs.remove
        }
        return SweepReport(
            at=now, rules=to_record(self.rules), jobs=going,
            removed={kind: RemovedKind(count=count, bytes=size) for kind, (count, size) in removed.items() if count},
            notices=notices, references=dict(jobs.references), problem=jobs.problem, is_applied=is_applied,
        )  # fmt: skip


def size_of_any(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    with suppress(OSError):
        return size_of(path) if path.is_dir() else path.stat().st_size
    return 0


def _has_ended(folder: Path) -> bool:
    layout = Layout(folder)
    return layout.result(layout.generation()).exists()


def _is_fresh(snapshot: Path, now: float) -> bool:
    """Return whether somebody has just added a snapshot again."""
    with suppress(FileNotFoundError):
        return now - snapshot.with_name(f"{snapshot.name}.files").stat().st_mtime < LEAST_AGE_S
    return False


def _empty(folder: Path) -> None:
    """Remove what is in a folder, and keep the folder."""
    if names := listed(folder):
        for name in names:
            discard(folder / name)
        sync_folder(folder)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock, if nobody else does; a process that is killed gives it up.

    Args:
        folder: that of retention, which is there already.

    Yields:
        False if somebody else holds it.
    """
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)
