"""The events of a job, followed through disconnects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import msgspec
from httpx_sse import EventSource

from parallelrun.errors import ApiError, ConnectionFailed
from parallelrun.http.retry import PATIENCE_S, RetryDeadline
from parallelrun.http.transport import Transport
from parallelrun.models import Job, Waiting
from parallelrun.resources.resource import as_model
from parallelrun_core.wire.progress import Progress

SILENCE_S: Final = 40.0
"""The server sends something every 15 s, whatever the job does; after this long without anything, the connection counts
as dead."""


class Event(msgspec.Struct, kw_only=True, frozen=True):
    event: str
    """snapshot, state, progress, waiting, error, size or end; of a pipeline step and steps, too."""
    data: dict[str, Any]
    id: str = ""
    """Its place in the job's history; empty for events that aren't part of that."""

    def job(self) -> Job:
        """The job that a `snapshot` or `end` carries. Raises ConnectionFailed: it carries none."""
        return as_model(self.data, Job)

    def waiting(self) -> Waiting | None:
        """The thing that the job waits for, of a `waiting`; None: nothing. Raises ConnectionFailed: it has none."""
        return as_model(self.data, Waiting) if self.data else None

    def progress(self) -> Progress:
        """The counts that a `progress` carries. Raises ConnectionFailed: it carries none."""
        return as_model(self.data, Progress)


def follow_events(
    transport: Transport,
    path: str,
    *,
    last_event_id: str = "",
    on_disconnect: Callable[[Exception], None] | None = None,
    silence_s: float = SILENCE_S,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Yield events until `end`. A new connection continues where the last one broke off.

    Args:
        silence_s: after this long without a sign of the server, be it a heartbeat, the connection counts as broken.
        patience_s: for how long new connections are tried.

    Raises:
        ApiError: the server refuses, for example because there is no such job.
        ConnectionFailed: the server was away for `patience_s`.
    """
    patience = RetryDeadline(patience_s, sleep=sleep)
    while True:
        failure: Exception
        received = 0
        try:
            with transport.stream(path, headers=_headers(last_event_id), read_timeout_s=silence_s) as response:
                try:
                    for event in _events_of(response):
                        last_event_id = event.id or last_event_id
                        yield event
                        if event.event == "end":
                            return
                finally:
                    received = response.num_bytes_downloaded
            failure = ConnectionFailed("The server closed the stream.")
        except httpx.TransportError as error:
            failure = transport.lost(error)
        except (ConnectionFailed, ApiError) as error:
            failure = error
        if received:
            patience.note_response()  # now: heartbeats and the time that the caller takes are no silence
        patience.check(failure)
        if on_disconnect:
            on_disconnect(failure)
        patience.pause()


def _events_of(response: httpx.Response) -> Iterator[Event]:
    last_id = ""
    for event in EventSource(response).iter_sse():
        # The id of an event stays that of those after it which have none.
        own_id = "" if event.id == last_id else event.id
        last_id = event.id
        if event.data:  # else it was a heartbeat
            yield Event(event=event.event, data=_object(event.data), id=own_id)


def _headers(last_event_id: str) -> dict[str, str]:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last_event_id:
        headers["Last-Event-ID"] = last_event_id
    return headers


def _object(text: str) -> dict[str, object]:
    try:
        data = json.loads(text)
    except ValueError:
        return {"message": text}
    return data if isinstance(data, dict) else {"value": data}
