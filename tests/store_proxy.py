"""A proxy in front of an object store that also imitates what stores themselves do wrong."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Literal

from tests.proxy import Proxy, reset

Fault = Literal["", "503", "expired", "cut", "cut-off"]
"""Instead of an answer, or in the middle of it.

    503      it has too much to do
    expired  the credentials were right, and are not any more
    cut      the connection is reset when a part of the answer has arrived
    cut-off  the same, and then there is no way to it any more (mode `reset`)
"""

_REFUSALS: dict[Fault, tuple[bytes, bytes]] = {
    "503": (b"503 Slow Down", b"<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>"),
    "expired": (b"403 Forbidden", b"<Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"),
}
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_CUT_AFTER = 20_000


class StoreProxy(Proxy):
    """See `Proxy`. Requests are not understood: only where they end."""

    def __init__(self, target: str, *, delay_s: float = 2.0) -> None:
        super().__init__(target, delay_s=delay_s)
        self._fault: Fault = ""
        self._times = 0
        self.faults = 0
        """How many answers it has spoilt."""

    def spoil(self, fault: Fault, times: int = 1_000_000) -> None:
        """From now on, this happens to so many answers, also on connections that are open."""
        asyncio.run_coroutine_threadsafe(self._spoil(fault, times), self._loop).result()

    async def _spoil(self, fault: Fault, times: int) -> None:
        self._fault, self._times = fault, times
        for link in list(self._links):
            link.close()  # clients open new ones

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault not in _REFUSALS or self._mode != "pass":
            await super()._accept(reader, writer)
            return
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            status, words = _REFUSALS[self._fault]
            self._count()
            body = b"<Error>" + words + b"</Error>"
            more = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
            writer.write(more + (b"" if head.startswith(b"HEAD") else body))
            await writer.drain()
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, open_gate: asyncio.Event) -> None:
        fault = self._fault
        if fault not in ("cut", "cut-off") or open_gate is not self._answering:
            await super()._pump(source, target, open_gate)
            return
        left = _CUT_AFTER
        with suppress(OSError):
            while chunk := await source.read(left):
                target.write(chunk)
                await target.drain()
                left -= len(chunk)
                if not left:
                    self._count()
                    reset(target)
                    if fault == "cut-off":
                        await self._set("reset")
                    return
        target.close()

    def _count(self) -> None:
        self.faults += 1
        self._times -= 1
        if not self._times:
            self._fault = ""
