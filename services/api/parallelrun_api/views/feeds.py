"""What happens to jobs, for those who watch: one reader per watched job, however many watch it.

Each watcher of a job blocking on Redis by itself would be a connection each, and as many copies of every event. So the
first watcher of a job starts a *feed*: one task that reads the job's event stream, keeps the latest events, notices
changes of state and version, and finds out when the job's result is recorded. The last watcher stops it.

A feed outlives Redis being away: it tries again until Redis is back, and goes on behind the last event that it saw.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import redis
from anyio.to_thread import run_sync

from parallelrun_api.views.events import BEGINNING, Event, EventId
from parallelrun_core.states import JobState
from parallelrun_core.store.keys import JobKeys

if TYPE_CHECKING:
    from redis.asyncio import Redis

_BLOCK_MS: Final = 10_000
_BLOCK_UNTIL_RECORDED_MS: Final = 200
_KEPT_EVENTS: Final = 256
_READ_AT_ONCE: Final = 200
_PLAIN_CONNECTIONS: Final = 16
_BLOCKING_CONNECTIONS: Final = 1000
"""One for each job that is watched."""
_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


@dataclass(slots=True)
class Feed:
    """The state of one watched job; one task writes it, all watchers on the same event loop read it."""

    job_id: str
    watchers: int = 0
    version: int = -1
    """As on Redis; -1 before the first look."""
    state: JobState | None = None
    """As on Redis; None before the first look, or when Redis doesn't know the job."""
    ended: bool = False
    """The job's result is recorded: no event follows."""
    trouble: Exception | None = None
    """The reason why nothing new can be read now."""
    complete_from: EventId | None = None
    """`latest` has all events after this one."""
    latest: deque[Event] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once, at the next change of anything here. Take it first and look afterwards: then nothing is missed."""

    def ring(self) -> None:
        """Wake all watchers that wait for a change."""
        self.bell.set()
        self.bell = asyncio.Event()

    def add(self, events: list[Event]) -> None:
        """Remember events, and forget the oldest ones beyond the limit."""
        self.latest.extend(events)
        while len(self.latest) > _KEPT_EVENTS:
            self.complete_from = self.latest.popleft().id


class Feeds:
    """All watched jobs. For one event loop."""

    def __init__(self, plain: Redis, blocking: Redis, has_ended: Callable[[str], bool]) -> None:
        self._plain = plain
        self._blocking = blocking
        self._has_ended = has_ended
        self._feeds: dict[str, Feed] = {}

    @property
    def watchers(self) -> int:
        """The number of watchers of all jobs."""
        return sum(feed.watchers for feed in self._feeds.values())

    @asynccontextmanager
    async def watch(self, job_id: str) -> AsyncIterator[Feed]:
        """The feed of a job, for as long as the context lasts."""
        feed = self._feeds.setdefault(job_id, Feed(job_id))
        feed.watchers += 1
        if feed.task is None:
            feed.task = asyncio.create_task(self._run(feed), name=f"feed {job_id}")
        try:
            yield feed
        finally:
            feed.watchers -= 1
            if not feed.watchers:
                del self._feeds[job_id]
                feed.task.cancel()

    async def last_id(self, job_id: str) -> EventId:
        """The latest event of a job."""
        newest: Any = await self._plain.xrevrange(JobKeys(job_id).events, count=1)
        return EventId.parse(newest[0][0].decode()) if newest else BEGINNING

    async def read(self, feed: Feed, after: EventId) -> list[Event]:
        """Events after `after`: some of them if there are many, none if they are only on Redis and it is away."""
        if feed.complete_from is not None and after >= feed.complete_from:
            return [event for event in feed.latest if event.id > after]
        try:
            return await _read(self._plain, feed.job_id, after)
        except redis.RedisError:
            return []

    async def ping(self) -> None:
        """Check that Redis answers.

        Raises:
            RedisError: it doesn't.
        """
        await self._plain.ping()

    def stop(self) -> None:
        """Wake all watchers, so that they see that the server stops."""
        for feed in self._feeds.values():
            feed.ring()

    async def close(self) -> None:
        """End all reading tasks, and close the connections."""
        tasks = [feed.task for feed in self._feeds.values() if feed.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._plain.aclose()
        await self._blocking.aclose()

    async def _run(self, feed: Feed) -> None:
        pause_s = _SHORTEST_PAUSE_S
        while not feed.ended:
            try:
                has_ended = await self._look(feed)
                pause_s = _SHORTEST_PAUSE_S
                if has_ended:
                    await self._finish(feed)
                else:
                    await self._listen(feed)
            except (redis.RedisError, OSError) as error:
                feed.trouble = error
                feed.ring()
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads the attempts
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _look(self, feed: Feed) -> bool:
        """Read the job's state; returns whether its result is recorded.

        A job's version changes before its event is added, so the version here is never behind the events.
        """
        if feed.complete_from is None:
            feed.complete_from = await self.last_id(feed.job_id)
        found: Any = await self._plain.hmget(JobKeys(feed.job_id).job, "state", "version")
        state, version = found
        feed.state = JobState(state.decode()) if state else None
        feed.version = int(version or 0)
        feed.trouble = None
        feed.ring()
        return _is_over(feed) and await run_sync(self._has_ended, feed.job_id)

    async def _listen(self, feed: Feed) -> None:
        """Wait for events, or until it is time to look again: there is no event for the recording of the result."""
        block_ms = _BLOCK_UNTIL_RECORDED_MS if _is_over(feed) else _BLOCK_MS
        feed.add(await _read(self._blocking, feed.job_id, _end_of(feed), block_ms))

    async def _finish(self, feed: Feed) -> None:
        """Read the events from before the result was recorded."""
        while events := await _read(self._plain, feed.job_id, _end_of(feed)):
            feed.add(events)
        feed.ended = True
        feed.ring()


def _is_over(feed: Feed) -> bool:
    return feed.state is None or feed.state.is_terminal


def _end_of(feed: Feed) -> EventId:
    """The last event that a feed has seen."""
    return feed.latest[-1].id if feed.latest else feed.complete_from or BEGINNING


def connect_async(url: str, *, timeout_s: float, connections: int) -> Redis:
    """A client for the event loop that raises at once when the server is away, and waits for a free connection."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        health_check_interval=0,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        # Connections through a unix socket don't know this one.
        **({} if url.startswith("unix:") else {"socket_keepalive": True}),
    )
    return Redis.from_pool(pool)


def open_feeds(url: str, has_ended: Callable[[str], bool]) -> Feeds:
    """The feeds of a server; nothing is connected before the first watcher comes."""
    plain = connect_async(url, timeout_s=5.0, connections=_PLAIN_CONNECTIONS)
    blocking = connect_async(url, timeout_s=_BLOCK_MS / 1000 + 5.0, connections=_BLOCKING_CONNECTIONS)
    return Feeds(plain, blocking, has_ended)


async def _read(client: Redis, job_id: str, after: EventId, block_ms: int | None = None) -> list[Event]:
    answer: Any = await client.xread({JobKeys(job_id).events: str(after)}, count=_READ_AT_ONCE, block=block_ms)
    return [
        Event(EventId.parse(entry_id.decode()), fields[b"event"].decode(), fields[b"data"].decode())
        for _, entries in answer or ()
        for entry_id, fields in entries
    ]
