"""What the client makes of the bytes of an event stream."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from parallelrun.http.transport import Transport
from parallelrun.resources.events import follow_events


class Recorded(Transport):
    """A server that has sent this."""

    def __init__(self, body: bytes) -> None:
        super().__init__("http://127.0.0.1")
        self._body = body

    @contextmanager
    def stream(self, *_: Any, **__: Any) -> Iterator[httpx.Response]:
        yield httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=self._body)


def test_data_with_line_separators_that_are_none_in_event_streams_arrives_whole() -> None:
    data = {"message": "before \u2028 between \u0085 after"}
    transport = Recorded(f"event: end\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode())

    events = list(follow_events(transport, "/v1/jobs/job_1/events"))

    assert [(event.event, event.data) for event in events] == [("end", data)]
    transport.close()
