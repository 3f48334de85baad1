"""A job's events as they happen (WHATWG server-sent events)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import Header, Query
from starlette.responses import StreamingResponse

from parallelrun_api.context import Context, Ctx
from parallelrun_api.http.answers import encoded
from parallelrun_api.http.auth import ADMISSION
from parallelrun_api.people.person import CURRENT
from parallelrun_api.routes.responses import JobId, content
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.jobs import Job
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.names.patterns import EVENT_ID
from parallelrun_core.service.pacing import Every
from parallelrun_core.store.connection import RedisError
from parallelrun_core.store.event_stream import EventId, StreamEvent
from parallelrun_core.wire.masking import Mask

router = Operations("jobs")

_RETRY_MS: Final = 1000
_WAITING_S: Final = 2.0
"""How often a stream finds out what its job waits for."""
_ADMISSION_S: Final = 1.0
"""How often a stream finds out whether who follows it may still do so."""
_JOB: Final = {"$ref": "#/components/schemas/Job"}
_DATA: Final[dict[str, dict[str, Any]]] = {
    "snapshot": _JOB,
    "state": {"type": "object", "properties": {"state": {"$ref": "#/components/schemas/JobState"}}},
    "progress": {"$ref": "#/components/schemas/Progress"},
    "waiting": {
        "anyOf": [{"$ref": "#/components/schemas/Waiting"}, {"type": "object", "maxProperties": 0}],
        "description": "What the job waits for; an empty object: for nothing any more.",
    },
    "step": {
        "type": "object",
        "description": "A step of a pipeline stands otherwise than before.",
        "properties": {
            "step": {"type": "string"},
            "state": {"$ref": "#/components/schemas/StepState"},
            "job_id": {"type": "string", "description": "Empty: there is none."},
            "why": {"type": "string"},
        },
    },
    "steps": {
        "type": "object",
        "description": "How many steps of a pipeline stand how: `total`, and each state that there is.",
        "additionalProperties": {"type": "integer"},
    },
    "size": {
        "type": "object",
        "description": "With `mini_batch_size: auto`: mini-batches have quite another number of items from now on.",
        "properties": {"items": {"type": "integer"}, "why": {"type": "string"}},
    },
    "error": {"type": "object", "description": "The first error of a kind, or a setback of the leader."},
    "end": _JOB,
}
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One event of the stream; `data` is JSON.",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": list(_DATA)},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string", "description": "Of all but `snapshot`, `waiting` and `end`."},
        "retry": {"type": "integer", "description": "Milliseconds after which to connect again."},
    },
    "oneOf": [
        {"properties": {"event": {"const": name}, "data": {"contentSchema": schema}}} for name, schema in _DATA.items()
    ],
}
"""What OpenAPI 3.1 takes as the schema of each event."""


@router.operation(
    "GET /jobs/{job_id:job}/events", "Follow a job", None, (404, 429), response_class=StreamingResponse,
    others=content("text/event-stream", "Events, until the job has ended.", _EVENT),
)  # fmt: skip
async def events(
    job_id: JobId,
    context: Ctx,
    last_event_id: Annotated[str, Header(description="Continue after this event.", pattern=EVENT_ID)] = "",
    last_event_id_query: Annotated[
        str,
        Query(
            alias="last_event_id",
            description="The same, where headers can't be set; 0: from the beginning.",
            pattern=EVENT_ID,
        ),
    ] = "",
) -> StreamingResponse:
    """Follow a job until it has ended.

    First comes a `snapshot` with the job; then each `state`, `progress`, `error`, `size`, `step` and `steps` as it
    happens, with an id; `waiting`, without one, when what it waits for has changed; at last an `end` with the job, once
    its result is recorded. After a broken connection, continue after the last id; without one, earlier events are left
    out. A comment every 15 s shows that the connection is alive. Without an `end`, the stream ends a second after the
    session or the token with which it was asked for.
    """
    last_id = last_event_id or last_event_id_query
    after = EventId.parse(last_id) if last_id else None
    context.check_streams()
    record = await run_sync(context.jobs.folder(job_id).record)
    # Before the snapshot is taken: an event between the two is then reported twice rather than not at all.
    position = after or await context.feeds.last_id(job_id)
    snapshot = await run_sync(lambda: context.with_waiting(context.jobs.get(job_id)))
    context.check_streams()  # others may have come meanwhile
    return StreamingResponse(
        _stream(context, snapshot, position, Mask(record.spec)),
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        media_type="text/event-stream",
    )


class _WaitingWords:
    """The last words that a stream has told of what its job waits for."""

    def __init__(self, context: Context, snapshot: Job) -> None:
        self._context = context
        self._folder = context.jobs.folder(snapshot.id)
        self._viewer = CURRENT.get()
        self._sent = snapshot.waiting
        self._due = Every(_WAITING_S)
        self.wait_s = self._due.wait_s

    async def news(self, now: float) -> str | None:
        """Return the data of an event if what the job waits for has changed; None: it hasn't, or nobody can say."""
        if not self._due.is_due(now):
            return None
        try:
            waiting = await run_sync(self._context.waits.of, self._folder, self._viewer)
        except (RedisError, ParallelRunError, OSError):
            return None
        if waiting == self._sent:
            return None
        self._sent = waiting
        return encoded(waiting) if waiting is not None else "{}"


async def _stream(context: Context, snapshot: Job, after: EventId, mask: Mask) -> AsyncIterator[bytes]:
    yield b"retry: %d\n" % _RETRY_MS + _frame("snapshot", encoded(snapshot))
    heartbeat = Every(context.heartbeat_s)
    heartbeat.delay(time.monotonic())
    words = _WaitingWords(context, snapshot)
    admission, admission_due = ADMISSION.get(), Every(_ADMISSION_S)
    async with context.feeds.watch(snapshot.id) as feed:
        while not context.stopping.is_set():
            if admission_due.is_due(time.monotonic()) and await admission.has_ended():
                return
            # Taken before the events are read: later ones ring this bell, and after the end there are none.
            bell, has_ended = feed.bell, feed.ended
            new = await context.feeds.read(feed, after)
            for event in new:
                after = event.id
                if event.name != "end":  # the end is reported below, once it is recorded
                    yield _frame(event.name, masked_data(event, mask), event.id)
                    heartbeat.delay(time.monotonic())
            if new:
                continue
            if has_ended:
                job = await run_sync(context.jobs.get, snapshot.id)
                yield _frame("end", encoded(job))
                return
            if (waiting := await words.news(time.monotonic())) is not None:
                yield _frame("waiting", waiting)
                heartbeat.delay(time.monotonic())
            with suppress(TimeoutError):
                now = time.monotonic()
                due = (heartbeat, words, admission_due)
                await asyncio.wait_for(bell.wait(), min(each.wait_s(now) for each in due))
            # By the time since the last byte: the bell also rings for what is no event.
            if heartbeat.is_due(time.monotonic()):
                yield b": still here\n\n"


def masked_data(event: StreamEvent, mask: Mask) -> str:
    """The data of an event. The user's own words are only in these fields of errors, and of what is told of steps."""
    if event.name not in ("error", "step"):
        return event.data
    fields = json.loads(event.data)
    words = ("message", "traceback", "why")
    return json.dumps(fields | {name: mask.printable(fields[name]) for name in words if name in fields})


def _frame(name: str, data: str, event_id: EventId | None = None) -> bytes:
    # Not `str.splitlines`: that splits at characters, too, which may stand in the middle of a JSON text.
    lines = [f"event: {name}", *(f"data: {line}" for line in data.split("\n"))]
    if event_id is not None:
        lines.insert(0, f"id: {event_id}")
    return ("\n".join(lines) + "\n\n").encode()
