"""Quotas: how much of a cluster a person may use, checked when they submit a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec.structs import asdict, replace

from parallelrun_api.people.person import CURRENT
from parallelrun_core.answers.people import Quota
from parallelrun_core.documents.codecs import FieldsCodec
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import Conflict, CorruptLog, NewerSchema, NotFound, ParallelRunError
from parallelrun_core.figures import counted
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.lru_cache import LruCache
from parallelrun_core.names.patterns import OWNER_NAME
from parallelrun_core.retention.sizes import SizesByOwner
from parallelrun_core.service import failpoints
from parallelrun_core.store.connection import CONNECTION_ERRORS, Redis
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.reservations import ReservationResult, Reservations, Reserving
from parallelrun_core.store.slot_quotas import EVERYBODY, SlotQuota, SlotQuotas

_FOLDER: Final = "quotas"
_MAX_BYTES: Final = 1 << 16
_STEP: Final = "\0"
"""The owner of a job that is a step: it counts with its pipeline."""
_CACHED_OWNERS: Final = 10_000


class QuotaExceeded(ParallelRunError, code="quota_exceeded", http_status=429):
    """The person has as many jobs as they may have, or has submitted too many in a minute."""

    # Not retryable, as nobody knows when: who submits is told at once, not after minutes in which a client tries again.


class Quotas:
    """The quotas of a cluster. Safe to share between threads.

    Args:
        key: seals each document, as that of computes; empty: no seals.
    """

    def __init__(self, root: Path, registry: Registry, redis: Redis, key: bytes = b"") -> None:
        self._root: Final = root
        self._registry: Final = registry
        self._slots: Final = SlotQuotas(redis)
        self._reservations: Final = Reservations(redis)
        self._reserved: Final = dict[str, str]()
        """Jobs that this server has created, and Redis may not know, with their owners."""
        self._sizes: Final = SizesByOwner(root)
        self._owners: Final = LruCache[str](_CACHED_OWNERS)
        self.documents: Final = Definitions(
            FileStore(root, _FOLDER, max_bytes=_MAX_BYTES, follows_links=False),
            FieldsCodec(
                asdict, lambda fields: Quota(**fields), key, repair_hint="set it again with `parallelrun quota set`"
            ),
            noun="quota",
            create_hint="set one with `parallelrun quota set NAME`",
            is_name=re.compile(OWNER_NAME).fullmatch,
        )

    def of(self, owner: str) -> Quota:
        """The quota of an owner: their own, or that of everybody. Whoever runs the server has none."""
        if not owner:
            return Quota(name=owner)
        return self.documents.find(owner) or self.documents.find(EVERYBODY) or Quota(name=owner)

    def define(self, quota: Quota) -> None:
        """Set a quota, durably. Raises InvalidInput, RedisError: Redis is told with the next submission."""
        self.documents.define(quota)
        self.publish()

    def change(self, name: str, limits: Mapping[str, Any]) -> Quota:
        """Set these limits of a quota, durably, and keep its others. Raises as `define`, and Conflict."""
        quota = self.documents.update(name, lambda before: replace(before or Quota(name=name), **limits))
        self.publish()
        return quota

    def remove(self, name: str) -> None:
        """Forget a quota. Raises NotFound; RedisError, as for `define`."""
        self.documents.remove(name)
        self.publish()

    def publish(self) -> None:
        """Write for agents, to Redis, how many slots and nodes people may have. Raises RedisError."""
        quotas = [self.documents.get(name) for name in self.documents.names()]
        self._slots.replace({quota.name: SlotQuota(quota.slots, quota.nodes) for quota in quotas})

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the folders of jobs that have ended, by owner, as they were swept last."""
        return self._sizes.all()

    def sizes_by_week(self) -> dict[tuple[str, str], int]:
        """Return the bytes of the folders of jobs that are kept, by the week in which they ended and their owner."""
        return self._sizes.by_week()

    def check(self) -> None:
        """Make sure that the person of this request may submit one more job now; nothing is counted.

        Raises:
            QuotaExceeded: they may not; says what their quota is, and what to do.
            RedisError: Redis is away.
        """
        owner = CURRENT.get().owner
        quota = self.of(owner)
        if self.documents.names() and not self._slots.exists():  # Redis may have forgotten
            self.publish()
        if (max_bytes := quota.job_bytes) is not None and (size := self.sizes().get(owner, 0)) >= max_bytes:
            raise QuotaExceeded(
                f"The jobs of {owner} take {size:,} bytes, and may take {max_bytes:,}: delete some "
                "(`parallelrun job delete`), or ask an admin of this cluster for more (`parallelrun quota set`). What "
                "is deleted counts no more after the next sweep, within an hour."
            )
        if quota.jobs is not None and (count := len(self._active_jobs(owner))) >= quota.jobs:
            raise _too_many_jobs(owner, count, quota.jobs)
        limit = quota.submissions_per_minute
        if limit is not None and self._reservations.submissions(owner, self._registry.now()) >= limit:
            raise _too_many_submissions(owner, limit)

    @contextmanager
    def reserved(self, job_id: str, owner: str, *, is_submission: bool = True) -> Iterator[None]:
        """Let a job count from now on, while it is created inside, or begins anew.

        However many requests come at the same moment, to any of a cluster's servers, no more jobs are created than a
        quota has. The job counts until `confirm`. It is released if what is inside raises, and two minutes after it was
        reserved if this server dies.

        Args:
            owner: of the job. If an admin makes it for them, no quota is asked for.
            is_submission: it counts for the submissions per minute.

        Raises:
            QuotaExceeded: they may have no more.
            RedisError: Redis is away.
        """
        quota = self.of(owner) if owner == CURRENT.get().owner else Quota(name=owner)
        max_submissions = quota.submissions_per_minute if is_submission else None
        if quota.jobs is None and max_submissions is None:
            yield
            return
        reservation = Reserving(
            owner=owner,
            job_id=job_id,
            most_jobs=quota.jobs,
            most_submissions=max_submissions,
            now=self._registry.now(),
        )
        self._reserve(reservation)
        failpoints.reach("quota.reserved")
        try:
            yield
        except (FileExistsError, Conflict):  # another request makes the same job, and has its reservation
            raise
        except BaseException:
            with suppress(*CONNECTION_ERRORS):  # it ends by itself
                self._reservations.release(reservation)
            raise
        self._reserved[job_id] = owner

    def confirm(self, job_id: str) -> None:
        """End the reservation of a job that Redis knows now, and that counts as a job from now on."""
        owner = self._reserved.pop(job_id, None)
        if owner is not None:
            with suppress(*CONNECTION_ERRORS):  # it ends by itself
                self._reservations.confirm(owner, job_id)

    def _reserve(self, reservation: Reserving) -> None:
        """Reserve a job. Raises QuotaExceeded, RedisError."""
        while True:
            changes = self._reservations.changes(reservation.owner)
            active = self._active_jobs(reservation.owner) if reservation.most_jobs is not None else []
            verdict, count = self._reservations.reserve(reservation, active, changes)
            if verdict is ReservationResult.RESERVED:
                return
            if verdict is ReservationResult.JOBS:
                raise _too_many_jobs(reservation.owner, count, reservation.most_jobs or 0)
            if verdict is ReservationResult.SUBMISSIONS:
                raise _too_many_submissions(reservation.owner, reservation.most_submissions or 0)

    def _active_jobs(self, owner: str) -> list[str]:
        job_ids = [job_id for job_id in self._registry.active_jobs() if self._owner_of(job_id) == owner]
        states = zip(job_ids, self._registry.states(job_ids), strict=True)
        return [job_id for job_id, state in states if state is not None and not state.is_terminal]

    def _owner_of(self, job_id: str) -> str:
        owner = self._owners.get(job_id)
        if owner is None:
            try:
                record = JobFolder(self._root, job_id).record()
            except (NotFound, NewerSchema, CorruptLog):
                return _STEP
            owner = self._owners.put(job_id, record.owner if record.parent is None else _STEP)
        return owner


def _too_many_jobs(owner: str, count: int, limit: int) -> QuotaExceeded:
    verb = "has" if count == 1 else "have"
    return QuotaExceeded(
        f"{owner} has {counted(count, 'job')} that {verb} not ended, and may have {limit:,}: wait until one has ended, "
        "cancel one, or ask an admin of this cluster for more (`parallelrun quota set`)."
    )


def _too_many_submissions(owner: str, limit: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"{owner} may submit {counted(limit, 'job')} in a minute: wait for the next one, submit one job with more "
        "inputs, or ask an admin of this cluster for more (`parallelrun quota set`)."
    )
