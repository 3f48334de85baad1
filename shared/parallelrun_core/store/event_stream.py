"""The events of a job, for those who watch it: how the API reads them, on an event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis

from parallelrun_core.store.connection import connect_async
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.states import JobState

_READ_AT_ONCE: Final = 200
_ANSWER_S: Final = 5.0
_CONNECTIONS: Final = 16
_WAITING_CONNECTIONS: Final = 1000
"""One for each job that is watched."""


class EventId(NamedTuple):
    """The id of a stream entry; ids compare in the order of the entries."""

    ms: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> EventId:
        """Read `<ms>-<sequence>`, or `<ms>` alone.

        Raises:
            ValueError: it has another form.
        """
        ms, _, sequence = text.partition("-")
        if not all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in (ms, sequence or "0")):
            raise ValueError(f"{text!r} is not the id of an event")
        return cls(int(ms), int(sequence or 0))

    def __str__(self) -> str:
        return f"{self.ms}-{self.sequence}"


BEGINNING: Final = EventId(0, 0)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    id: EventId
    name: str
    data: str


class EventStreams:
    """The event streams of all jobs. For one event loop; raises redis-py's errors.

    Args:
        wait_s: how long `next` waits at most. Nothing is connected before the first call.
    """

    def __init__(self, url: str, *, wait_s: float) -> None:
        self._wait_ms = round(wait_s * 1000)
        self._plain = connect_async(url, timeout_s=_ANSWER_S, connections=_CONNECTIONS)
        self._waiting = connect_async(url, timeout_s=wait_s + _ANSWER_S, connections=_WAITING_CONNECTIONS)

    async def last_id(self, job_id: str) -> EventId:
        newest: Any = await self._plain.xrevrange(JobKeys(job_id).events, count=1)
        return EventId.parse(newest[0][0].decode()) if newest else BEGINNING

    async def after(self, job_id: str, event_id: EventId) -> list[StreamEvent]:
        """Return what is there after an event: some of it, if there is much."""
        return await _read(self._plain, job_id, event_id, None)

    async def next(self, job_id: str, event_id: EventId, *, most_s: float | None = None) -> list[StreamEvent]:
        """Wait for what comes after an event; nothing, if nothing comes in time."""
        wait_ms = self._wait_ms if most_s is None else min(self._wait_ms, round(most_s * 1000))
        return await _read(self._waiting, job_id, event_id, wait_ms)

    async def state_and_version(self, job_id: str) -> tuple[JobState | None, int]:
        """A job's state, None when Redis doesn't know the job, and its version.

        A job's version changes before its event is added, so the version is never behind the events.
        """
        answer: Any = await self._plain.hmget(JobKeys(job_id).job, "state", "version")
        state, version = answer
        return JobState(state.decode()) if state else None, int(version or 0)

    async def ping(self) -> None:
        """Check that Redis answers."""
        await self._plain.ping()

    async def close(self) -> None:
        await self._plain.aclose()
        await self._waiting.aclose()


async def _read(client: Redis, job_id: str, after: EventId, block_ms: int | None) -> list[StreamEvent]:
    answer: Any = await client.xread({JobKeys(job_id).events: str(after)}, count=_READ_AT_ONCE, block=block_ms)
    return [
        StreamEvent(EventId.parse(entry_id.decode()), fields[b"event"].decode(), fields[b"data"].decode())
        for _, entries in answer or ()
        for entry_id, fields in entries
    ]
