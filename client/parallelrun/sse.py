"""Server-sent events: text lines in, events out. No I/O here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_LINE_BREAK: Final = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSentEvent:
    """One dispatched event; `id` is its own id, after which a reader can resume, or empty."""

    event: str
    data: str
    id: str


class EventParser:
    """Takes the stream line by line, as the WHATWG standard defines it.

    `retry` is ignored: the client has growing pauses of its own.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, line: str) -> ServerSentEvent | None:
        """Take one line without its line break; returns the event that it completes, if any."""
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            return None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        # An event is complete with its empty line: an id that is cut off before that must not count as seen.
        if self._id is not None:
            self.last_id = self._id
        event, data, own_id = self._event, self._data, self._id
        self._event, self._data, self._id = "", [], None
        if not data:
            return None
        return ServerSentEvent(event=event or "message", data="\n".join(data), id=own_id or "")


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Split a byte stream at CR, LF or CR LF, and nowhere else.

    Not `str.splitlines`, which also splits at characters that may occur within a JSON text.
    """
    rest = b""
    skip_newline = False
    for arrived in filter(None, chunks):
        chunk = arrived.removeprefix(b"\n") if skip_newline else arrived
        # A CR at the very end completes its line now, but an LF that follows it belongs to it.
        skip_newline = chunk.endswith(b"\r")
        *lines, rest = _LINE_BREAK.split(rest + chunk)
        for line in lines:
            yield line.decode(errors="replace")
