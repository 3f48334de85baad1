"""Delivery of one entry of the outbox: the end that is meant, counted attempts, and when to try again."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from parallelrun_core.documents.schema import decode
from parallelrun_core.errors import NotFound, ParallelRunError
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.service import telemetry
from parallelrun_core.service.process import die_with_parent
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretSource
from parallelrun_core.spec.secrets import OF_SERVICES, is_for_jobs
from parallelrun_master.outbox.entries import OutboxEntry, job_of, taken

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

_UNTIL_ENDED_S: Final = 2.0
GIVE_UP_S: Final = 24 * 3600.0
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 3600.0


class DeliveryOrder(msgspec.Struct, kw_only=True, frozen=True):
    """An order of a master to deliver entries, as the process reads it from its stdin."""

    root: str
    log_format: str
    now: float
    """By Redis' clock."""
    names: list[str]
    secrets_dir: str = ""

    @classmethod
    def of(cls, settings: MasterSettings, names: list[str], now: float, **of_destination: Any) -> bytes:
        """Return an order of a master with these settings, as the process reads it.

        Args:
            of_destination: the fields that a destination adds.
        """
        order = cls(
            root=str(settings.root), log_format=settings.log_format, now=now, names=names,
            secrets_dir=settings.secrets_dir, **of_destination,
        )  # fmt: skip
        return msgspec.json.encode(order)


_Order = TypeVar("_Order", bound=DeliveryOrder)


def carry_out(kind: type[_Order], deliver: Callable[[_Order, SecretSource], None]) -> None:
    """Read the order that is on stdin, and deliver what it names.

    Args:
        deliver: gets the secrets of the master as well, such as keys that sign and passwords of servers; of these, only
            those that no job can have.
    """
    die_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=kind)
    telemetry.configure("master", log_format=order.log_format)
    with closing(ProcessSecrets(order.secrets_dir)) as secrets_of_master:
        deliver(order, SecretsOfServices(secrets_of_master))


class SecretsOfServices(SecretSource):
    """The secrets of another source that jobs can't have: nodes may read from the same one."""

    def __init__(self, source: SecretSource) -> None:
        super().__init__(source.place)
        self._source = source

    def read(self, name: str) -> bytes:
        if is_for_jobs(name):
            raise ValueError(f"a job could read {name!r}, too: call it {OF_SERVICES}/{name}")
        return self._source.read(name)

    def stamp(self, name: str) -> object:
        return self._source.stamp(name)


class Clock:
    """Redis' clock, in a process that doesn't know Redis.

    Args:
        now: its time when this is created.
    """

    def __init__(self, now: float) -> None:
        self._now, self._began = now, time.monotonic()

    def __call__(self) -> float:
        return self._now + time.monotonic() - self._began


@dataclass(frozen=True)
class JobEnd:
    folder: JobFolder
    record: JobRecord
    result: JobResult
    generation: int
    owed: OutboxEntry
    clock: Callable[[], float]

    def begin_attempt(self) -> float | None:
        """Count an attempt, durably, before it is made: what we die of must not come again at once.

        Returns:
            After how many seconds the next one is due; None: there is none.
        """
        attempts = self.owed.attempts
        attempts.count += 1
        attempts.first_at = attempts.first_at or self.clock()
        again_s = pause_s(attempts.count, self.clock() - attempts.first_at, secrets.randbelow(1000) / 1000)
        self.put_off(again_s or _LONGEST_PAUSE_S)
        return again_s

    def put_off(self, seconds: float) -> None:
        """Put the entry off until it is due again."""
        self.owed.attempts.next_at = self.clock() + seconds
        self.owed.note()


@contextmanager
def due_end(root: Path, notes: Path, name: str, clock: Callable[[], float]) -> Iterator[JobEnd | None]:
    """The end with this name, for as long as this lasts; None: it isn't due, or not recorded yet, or can't be read, or
    another process has it, or its job is gone.
    """
    job = job_of(name)
    with taken(notes, name) as owed:
        if owed is None or job is None or owed.attempts.next_at > clock():
            yield None
            return
        job_id, generation = job
        folder = JobFolder(root, job_id)
        try:
            record = folder.record()
            path = folder.layout.result(generation)
            result = decode(path.read_bytes(), JobResult, path)
        except NotFound:
            owed.remove()
            yield None
        except FileNotFoundError:  # it is about to be recorded, or its leader has died before
            owed.attempts.next_at = clock() + _UNTIL_ENDED_S
            owed.note()
            yield None
        except (ParallelRunError, OSError) as error:  # of a newer release, or the volume may give it back
            telemetry.logger().warning("end_unreadable", job_id=job_id, reason=str(error))
            owed.attempts.next_at = clock() + _LONGEST_PAUSE_S
            owed.note()
            yield None
        else:
            yield JobEnd(folder, record, result, generation, owed, clock)


def pause_s(attempts: int, lasted_s: float, spread: float) -> float | None:
    """Return how long to wait after so many attempts; None: it is given up.

    Args:
        lasted_s: since the first attempt.
        spread: 0 to 1, by chance, so that what failed together doesn't come back together.
    """
    if lasted_s >= GIVE_UP_S:
        return None
    return float(min(_FIRST_PAUSE_S * 2 ** min(attempts - 1, 20), _LONGEST_PAUSE_S) * (0.75 + spread / 2))
