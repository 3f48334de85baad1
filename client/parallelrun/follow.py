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
"""The server says something every 15 s; after this long the connection is taken for dead."""


def follow_events(
    transport: Transport,
    path: str,
    *,
    last_event_id: str = "",
    on_disconnect: Callable[[Exception], None] | None = None,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Yield events until `end`, each connection going on where the one before broke off.

    Raises:
        ApiError: the server refuses, as for a job that isn't there.
        ConnectionFailed: nothing was heard of the server for `patience_s`.
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
                    patience.heard()  # what the caller took for it was no silence of the server
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
