"""Pauses jobs, lets them go on, and changes their priority: recorded in the folder, durably, then told to Redis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from parallelrun_api.people.access import NotAllowed
from parallelrun_api.people.person import CURRENT
from parallelrun_core.errors import Conflict
from parallelrun_core.folder.control import Control, effective_control, read_control, write_control
from parallelrun_core.folder.job_folder import JobFolder, job_folder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.ids import is_from
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.service import telemetry
from parallelrun_core.store.connection import Redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import URGENT, Orders, Priority

log = telemetry.logger()


class Controls:
    """Changes how jobs that have not ended go on. Safe to share between threads."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self._root = root
        self._registry = registry

    def of(self, job_id: str) -> Control:
        """Return what holds for a job. Raises NotFound, NewerSchema, CorruptLog: its record can't be read."""
        folder = job_folder(self._root, job_id)
        return effective_control(folder, folder.record())

    def pause(self, job_id: str) -> None:
        """Let nodes begin no more mini-batches of a job; what runs ends, and counts. Again, it changes nothing.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended.
            RedisError: Redis is away; the leader tells it later.
        """
        person = CURRENT.get()

        def paused(control: Control, owner: str) -> Control:
            if control.paused:
                return control
            return replace(
                control,
                paused=True,
                paused_by=person.owner,
                paused_by_admin=person.is_admin and person.owner != owner,
                paused_at=time.time(),
            )

        self._change(job_id, paused)

    def go_on(self, job_id: str) -> None:
        """Let a paused job go on. Again, it changes nothing.

        Raises:
            NotFound, Conflict, RedisError: as for `pause`.
            NotAllowed: an admin has paused it, and the person isn't one.
        """

        def unpaused(control: Control, _: str) -> Control:
            if _needs_admin(control):
                whom = control.paused_by or "whoever runs this server"
                raise NotAllowed(f"{whom} has paused job {job_id}, as an admin: ask them to let it go on.")
            return replace(control, paused=False, paused_by="", paused_by_admin=False, paused_at=0.0)

        self._change(job_id, unpaused)

    def prioritize(self, job_id: str, priority: Priority) -> str:
        """Give a job another priority, while it waits or runs; returns the one that it had.

        Raises:
            NotFound, Conflict, RedisError: as for `pause`.
            NotAllowed: it would be urgent, or an admin has set its priority, and the person isn't an admin.
        """
        person = CURRENT.get()
        earlier: list[str] = []

        def prioritized(control: Control, owner: str) -> Control:
            if not person.is_admin and (priority == URGENT or control.prioritized_by_admin):
                why = "only an admin makes a job urgent" if priority == URGENT else "an admin has set its priority"
                raise NotAllowed(f"The priority of job {job_id} can't be changed: {why}. Ask one.")
            by_admin = person.is_admin and person.owner != owner
            earlier.append(control.priority or "")
            return replace(control, priority=priority, prioritized_by_admin=by_admin)

        self._change(job_id, prioritized)
        return earlier[-1] or str(job_folder(self._root, job_id).record().spec.get("priority") or "normal")

    def is_paused(self, job_id: str) -> bool:
        """Return whether a job is paused, and has not ended. Raises NotFound: there is no such job."""
        folder = job_folder(self._root, job_id)
        return folder.result() is None and effective_control(folder, folder.record()).paused

    def forget_pause(self, job_id: str) -> None:
        """Let a job that has ended, and goes on in a new generation, not be paused from its beginning."""
        folder = job_folder(self._root, job_id)
        if (control := read_control(folder)).paused:
            write_control(folder, replace(control, paused=False, paused_by="", paused_by_admin=False, paused_at=0.0))

    def _change(self, job_id: str, change: Callable[[Control, str], Control]) -> None:
        folder = job_folder(self._root, job_id)
        record = folder.record()
        if (result := folder.result()) is not None:
            raise Conflict(f"Job {job_id} is {result.state}: only a job that has not ended can be paused or raised.")
        control = effective_control(folder, record)
        changed = change(control, record.owner)
        if changed != control:
            write_control(folder, changed)
        for each, orders in self._with_steps(folder, record):
            self._registry.order(each, orders)
        log.info("job_controlled", job_id=job_id, paused=changed.paused, priority=changed.priority)

    def _with_steps(self, folder: JobFolder, record: JobRecord) -> Iterator[tuple[str, Orders]]:
        """Yield a job, and those of its steps that have not ended, each with what holds for it now."""
        yield folder.job_id, effective_control(folder, record).orders
        if not record.is_pipeline:
            return
        for job_id in self._registry.active_jobs():
            if not is_from(job_id, record.outermost):
                continue
            step = JobFolder(self._root, job_id)
            try:
                step_record = step.record()
            except UNREADABLE:
                continue
            if step_record.outermost == folder.job_id:
                yield job_id, effective_control(step, step_record).orders


class Cancels:
    """Cancels jobs. Safe to share between threads."""

    def __init__(self, root: Path, redis: Redis) -> None:
        self._root = root
        self._redis = redis

    def cancel(self, job_id: str) -> None:
        """Cancel a job that has not ended; of a pipeline, also the jobs of its steps. Again, it changes nothing.

        It stays canceled, whatever Redis forgets.

        Raises:
            NotFound: there is no such job.
            Conflict: it has ended otherwise, or its output is being put together.
        """
        cancel(self._redis, job_folder(self._root, job_id))
        log.info("job_canceled", job_id=job_id)


def _needs_admin(control: Control) -> bool:
    """Return whether the job was paused by an admin, and the person who asks for it to go on isn't one."""
    return control.paused and control.paused_by_admin and not CURRENT.get().is_admin
