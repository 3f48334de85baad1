"""An entry of a queue, as RQ reads it: never more than the id of a job.

RQ calls whatever function an entry names, and its callbacks, and sends its webhooks: who can write to Redis could run
any code in every master. So of an entry's fields, only those are read that RQ needs to keep its books; the function
that runs is the worker's own. An entry that asks for anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from redis import Redis
from rq import Queue
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import now, utcformat

from parallelrun_core.errors import NotFound
from parallelrun_core.ids import checked_job_id
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.errors import CONNECTION_ERRORS
from parallelrun_core.store.fast_path import Command

log = logger()

NO_TIMEOUT: Final = -1
REMEMBER_FAILED_S: Final = 3600
_BELIEVED: Final = frozenset(
    {
        b"created_at", b"data", b"description", b"ended_at", b"enqueued_at", b"last_heartbeat", b"origin",
        b"started_at", b"status", b"worker_name",
    }
)  # fmt: skip
_LEAST_VERSION: Final = (6, 2, 0)
"""Of servers, as `fitness` makes sure: RQ would ask each client's for its own, in a round trip."""
_LONGEST_ID: Final = 120
"""Letters of an entry's id that are logged."""


@dataclass(frozen=True, slots=True)
class EntryKind:
    """A queue, and the one function that its entries may name."""

    queue: str
    function: str
    """A label, as RQ's tools show it; it is compared, and never imported."""


LEAD: Final = EntryKind("jobs", "parallelrun_master.leader_process.lead")
"""One entry starts one leader."""
CONCATENATE: Final = EntryKind("concatenate", "parallelrun_concatenator.concatenate.concatenate")
"""One entry puts one job's output together."""


class Entry(Job):
    """An entry of the queue of one kind; made by `queue`."""

    kind: ClassVar[EntryKind]
    run: ClassVar[Callable[[str], object] | None]
    """The function that a worker runs with the id of the job."""

    @classmethod
    def fetch(cls, id: str, connection: Redis | None = None, serializer: Any = None) -> Job:
        """An entry by its id; one that can't be read doesn't exist, or it would end one worker after the other."""
        try:
            return super().fetch(id, connection, serializer)
        except (NoSuchJobError, *CONNECTION_ERRORS):
            raise
        except Exception as error:
            cls.report_refused(id, f"it can't be read ({type(error).__name__})")
            raise NoSuchJobError(id) from error

    def restore(self, raw_data: dict[bytes, bytes]) -> None:
        """Take over the fields that are believed; RQ reads all others as if they weren't there."""
        super().restore({name: value for name, value in raw_data.items() if name in _BELIEVED})
        self.timeout, self.result_ttl, self.failure_ttl = NO_TIMEOUT, 0, REMEMBER_FAILED_S

    def requested_job_id(self) -> str | None:
        """The id of the job that is meant; None when the entry asks for anything but the function of its kind."""
        try:
            match json.loads(self.data):
                case [self.kind.function, None, [str(job_id)], {**more}] if not more:
                    return checked_job_id(job_id)
        except (ValueError, RecursionError, NotFound):
            pass
        return None

    def perform(self) -> object:
        """Run the worker's own function; what RQ would import is never resolved."""
        job_id, run = self.requested_job_id(), type(self).run
        if job_id is None or run is None:
            raise PermissionError("this entry may not be run here")
        return run(job_id)

    @classmethod
    def report_refused(cls, entry_id: str, reason: str) -> None:
        """Log that an entry isn't run. Its arguments are not logged: somebody else has chosen them."""
        log.warning("rq_job_refused", rq_job=entry_id[:_LONGEST_ID], queue=cls.kind.queue, reason=reason)


def queue(redis: Redis, kind: EntryKind, run: Callable[[str], object] | None = None) -> Queue:
    """The queue of a kind, without pickle; `run`, for workers, is called with the id of each job that is meant."""
    entries = Queue(kind.queue, connection=redis, serializer=JSONSerializer, job_class=_entry_class(kind, run))
    entries.redis_server_version = _LEAST_VERSION
    return entries


def new_entry(kind: EntryKind, job_id: str, entry_id: str, *, is_first: bool = False) -> Iterator[Command]:
    """Yield the commands that put a new entry into its queue, for one transaction.

    RQ's own `enqueue` writes the same fields, and some that are empty; for that it takes a third of the CPU of what an
    API does on Redis for a job.

    Args:
        is_first: before all others, else behind them.
    """
    at = utcformat(now())
    fields = {
        "created_at": at,
        "data": json.dumps([kind.function, None, [job_id], {}]),
        "description": f"{kind.function} {job_id}",
        "enqueued_at": at,
        "failure_ttl": REMEMBER_FAILED_S,
        "origin": kind.queue,
        "result_ttl": 0,
        "status": JobStatus.QUEUED.value,
        "timeout": NO_TIMEOUT,
    }
    key = f"{Queue.redis_queue_namespace_prefix}{kind.queue}"
    yield "SADD", Queue.redis_queues_keys, key
    yield "HSET", Job.key_for(entry_id), *(word for field in fields.items() for word in field)
    yield "LPUSH" if is_first else "RPUSH", key, entry_id


@lru_cache(maxsize=8)
def _entry_class(kind: EntryKind, run: Callable[[str], object] | None) -> type[Entry]:
    return type("Entry", (Entry,), {"kind": kind, "run": None if run is None else staticmethod(run)})
