"""Follows a stream of events through disconnects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Final

import httpx

from parallelrun.errors import ApiError, ConnectionFailed
from parallelrun.models import Event
from parallelrun.patience import PATIENCE_S, Patience
from parallelrun.sse import EventParser, lines_of
from parallelrun.transport import Transport

SILENCE_S: Final = 40.0
"""The server sends something every 15 s; after this long without anything, the connection counts as dead."""


def follow_events(
    transport: Transport,
    path: str,
    *,
    last_event_id: str = "",
    on_disconnect: Callable[[Exception], None] | None = None,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Yield events until `end`. A new connection continues where the last one broke off.

    Raises:
        ApiError: the server refuses, for example because there is no such job.
        ConnectionFailed: nothing was heard from the server for `patience_s`.
    """
    parser = EventParser(last_event_id)
    patience = Patience(patience_s, sleep=sleep)
    while True:
        failure: Exception
        try:
            with transport.stream(path, headers=_headers(parser.last_id), read_timeout_s=SILENCE_S) as response:
                for line in lines_of(response.iter_bytes()):
                    patience.heard()
                    event = parser.feed(line)
                    if event is None:
                        continue
                    yield Event(event=event.event, data=_object(event.data), id=event.id)
                    if event.event == "end":
                        return
                    patience.heard()  # the time that the caller took for it is not silence of the server
            failure = ConnectionFailed("The server closed the stream.")
        except httpx.TransportError as error:
            failure = transport.lost(error)
        except (ConnectionFailed, ApiError) as error:
            failure = error
        patience.check(failure)
        if on_disconnect:
            on_disconnect(failure)
        parser = EventParser(parser.last_id)
        patience.pause()


def _headers(last_id: str) -> dict[str, str]:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    return headers


def _object(data: str) -> dict[str, object]:
    try:
        found = json.loads(data)
    except ValueError:
        return {"message": data}
    return found if isinstance(found, dict) else {"value": found}
