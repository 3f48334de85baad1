"""HTTP/1.1 on one connection, with limits: on time (see `connections`), on heads, and on work between two steps."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from parallelrun_api.http.connections import MAX_HEAD_BYTES, Connections, Moved

_FIRST_READ_BYTES: Final = 8 << 10
"""That are read at a time before a token was shown: of a body in chunks of one byte, 256 KiB take half a second, in
which all others wait."""
_READ_BYTES: Final = 64 << 10
"""That are read at a time of the body of a client with a token."""
_CLOSE: Final = b"\r\nconnection: close\r\n"
_WORDS: Final = {
    400: ("bad_request", "Bad Request", "The request is not valid HTTP."),
    408: ("request_timeout", "Request Timeout", "The request took too long to arrive."),
    431: ("head_too_large", "Request Header Fields Too Large", f"The head has more than {MAX_HEAD_BYTES:,} bytes."),
}


class _Conn(h11.Connection):
    """Tells the client of an answer that comes before its body was here that no other request will be read.

    h11 itself isn't told: it would have the connection closed at once, and what still comes would then reset it before
    the client has read the answer.
    """

    def send(self, event: h11.Event) -> bytes | None:  # type: ignore[override]
        is_early = isinstance(event, h11.Response) and self.their_state is h11.SEND_BODY
        sent = super().send(event)
        if is_early and sent is not None and _CLOSE not in sent.lower():
            return sent[:-2] + b"Connection: close\r\n\r\n"
        return sent


class BoundedHttp(H11Protocol):
    """A connection whose client is held to sending its requests, and to reading the answers."""

    def __init__(self, *, connections: Connections, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self.conn = _Conn(h11.SERVER, MAX_HEAD_BYTES)
        self._all = connections
        self._is_open = False
        self._is_asking = True
        self._is_deaf = False
        self._received = 0
        self._drained = 0

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return cast("RequestResponseCycle | None", self.cycle)

    @property
    def _is_known(self) -> bool:
        """Return whether the latest request came with a token."""
        return "token_name" in cast("dict[str, object]", self.scope["state"])

    def _read_at_most(self, size_bytes: int) -> None:
        """Limit what asyncio reads, and hands over, at a time."""
        if hasattr(self.transport, "max_size"):
            self.transport.max_size = size_bytes

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_open = True
        self._read_at_most(_FIRST_READ_BYTES)
        self._all.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._all.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._is_deaf:
            return
        super().data_received(data)
        self._note(is_asking=True)

    def resume_writing(self) -> None:
        self._drained += 1
        super().resume_writing()

    # What uvicorn calls

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            # Refused before its body was here. What still comes is not even parsed; the client may read the answer
            # until its time is up.
            self._is_deaf = True
            with suppress(OSError):  # it is gone already
                self.transport.write_eof()
        self._note(is_asking=False)

    def send_400_response(self, msg: str) -> None:
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(431 if hint == 431 else 400)

    # What `Connections` calls

    def moved(self) -> Moved:
        """Return what it has moved so far."""
        cycle, flow = self._cycle, self.flow
        is_owed = cycle is not None and cycle.more_body and not cycle.response_complete and not flow.read_paused
        unsent = self.transport.get_write_buffer_size() if flow.write_paused or self.transport.is_closing() else 0
        return Moved(self._received, is_owed, self._drained, unsent)

    def end(self, *, late: bool) -> None:
        """Close it at once."""
        if late and not self._is_deaf and self._received:
            self._refuse(408)
        self.transport.abort()

    def _note(self, *, is_asking: bool) -> None:
        """Tell what it does now. Its time begins anew with an answer, and with the first byte of the next request."""
        if not self._is_open:
            return
        if self._cycle is not None and not self._cycle.response_complete:
            self._all.works(self)
            if self._is_known and self._received > _FIRST_READ_BYTES:
                self._read_at_most(_READ_BYTES)
        elif not (is_asking and self._is_asking):
            self._is_asking = is_asking
            self._all.waits(self, is_known=self._is_known)

    def _refuse(self, status: int) -> None:
        """Answer without the application, if nothing is answered yet, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            code, title, detail = _WORDS[status]
            problem = {
                "type": f"urn:parallelrun:problem:{code}",
                "title": title,
                "status": status,
                "detail": detail,
                "code": code,
                "errors": [],
            }
            body = json.dumps(problem).encode()
            head = f"HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
            self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()
