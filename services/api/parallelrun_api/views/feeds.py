"""Feeds of changes of jobs: one reader per watched job, however many watch it.

Each watcher of a job blocking on Redis by itself would be a connection each, and as many copies of every event. So the
first watcher of a job starts a *feed*: one task that reads the job's event stream, keeps the latest events, notices
changes of state and version, and finds out when the job's result is recorded. The last watcher stops it.

A feed outlives Redis being away: it tries again until Redis is back, and goes on behind the last event that it saw.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from anyio.to_thread import run_sync

from parallelrun_core.service.pacing import Backoff
from parallelrun_core.store.connection import RedisError
from parallelrun_core.store.event_stream import BEGINNING, EventId, EventStreams, StreamEvent
from parallelrun_core.wire.states import JobState

WAIT_S: Final = 10.0
"""How long a feed waits for events at a time."""
_WAIT_UNTIL_RECORDED_S: Final = 0.2
"""How long it waits at a time once the job is over: there is no event for the recording of its result."""
_MOST_EVENTS: Final = 256
"""The latest events of a job that its feed keeps."""


@dataclass(slots=True)
class Feed:
    """The state of one watched job; one task writes it, all watchers on the same event loop read it."""

    job_id: str
    watchers: int = 0
    version: int = -1
    """The job's version on Redis; -1 before it is read."""
    state: JobState | None = None
    """The job's state on Redis; None before it is read, or when Redis doesn't know the job."""
    ended: bool = False
    """The job's result is recorded: no event follows."""
    trouble: Exception | None = None
    """The reason why nothing new can be read now."""
    complete_from: EventId | None = None
    """`latest` has all events after this one."""
    latest: deque[StreamEvent] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once, at the next change of the feed, which then has a new bell. Take it before reading the rest of the feed,
    and wait for it afterwards: then no change is missed."""

    def ring(self) -> None:
        """Wake all watchers that wait for a change."""
        self.bell.set()
        self.bell = asyncio.Event()

    def add(self, events: list[StreamEvent]) -> None:
        """Remember events, and forget the oldest ones beyond the limit."""
        self.latest.extend(events)
        while len(self.latest) > _MOST_EVENTS:
            self.complete_from = self.latest.popleft().id


class Feeds:
    """All watched jobs. For one event loop."""

    def __init__(self, streams: EventStreams, has_ended: Callable[[str], bool]) -> None:
        self._streams = streams
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
        """Return the id of the job's latest event on Redis."""
        return await self._streams.last_id(job_id)

    async def read(self, feed: Feed, after: EventId) -> list[StreamEvent]:
        """Return events after this one: some of them if there are many, none if only Redis has them, and it is away."""
        if feed.complete_from is not None and after >= feed.complete_from:
            return [event for event in feed.latest if event.id > after]
        try:
            return await self._streams.after(feed.job_id, after)
        except RedisError:
            return []

    async def ping(self) -> None:
        """Check that Redis answers.

        Raises:
            RedisError: it doesn't.
        """
        await self._streams.ping()

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
        await self._streams.close()

    async def _run(self, feed: Feed) -> None:
        backoff = Backoff(0.05, 2.0, jitter=0.5)
        while not feed.ended:
            try:
                has_ended = await self._refresh(feed)
                backoff.reset()
                if has_ended:
                    await self._finish(feed)
                else:
                    await self._listen(feed)
            except (RedisError, OSError) as error:
                feed.trouble = error
                feed.ring()
                await asyncio.sleep(backoff.next_s())

    async def _refresh(self, feed: Feed) -> bool:
        """Read the job's state; returns whether its result is recorded."""
        if feed.complete_from is None:
            feed.complete_from = await self.last_id(feed.job_id)
        feed.state, feed.version = await self._streams.state_and_version(feed.job_id)
        feed.trouble = None
        feed.ring()
        return _is_over(feed) and await run_sync(self._has_ended, feed.job_id)

    async def _listen(self, feed: Feed) -> None:
        """Wait for events, or until it is time to refresh."""
        most_s = _WAIT_UNTIL_RECORDED_S if _is_over(feed) else None
        feed.add(await self._streams.next(feed.job_id, _end_of(feed), most_s=most_s))

    async def _finish(self, feed: Feed) -> None:
        """Read the events from before the result was recorded."""
        while events := await self._streams.after(feed.job_id, _end_of(feed)):
            feed.add(events)
        feed.ended = True
        feed.ring()


def _is_over(feed: Feed) -> bool:
    return feed.state is None or feed.state.is_terminal


def _end_of(feed: Feed) -> EventId:
    return feed.latest[-1].id if feed.latest else feed.complete_from or BEGINNING
