"""TLS in front of an API on this machine: Azure ML's client sends no token without it.

It passes bytes on and knows nothing of them; who may do what is up to the API. It listens on the loopback interface
only, so nobody on the network reaches more through it than before.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_CONNECTIONS: Final = 500
"""Connections at the same time."""
IDLE_S: Final = 12 * 3600.0
"""After so long without a connection, it ends."""
_HANDSHAKE_S: Final = 10.0
_CONNECT_S: Final = 10.0
_SILENCE_S: Final = 900.0
_CHUNK: Final = 256 << 10
_CHECK_EVERY_S: Final = 60.0


class Front:
    """Passes connections on to a host and port. For one event loop."""

    def __init__(
        self, host: str, port: int, chain: Path, *, most: int = MAX_CONNECTIONS, idle_s: float = IDLE_S
    ) -> None:
        self._target = (host, port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.load_cert_chain(chain)
        self._max_connections = most
        self._idle_s = idle_s
        self._passing: set[asyncio.Task[None]] = set()
        """One for each connection."""
        self._used_at = time.monotonic()

    async def serve(self, listener: socket.socket, stopping: asyncio.Event) -> None:
        """Pass connections on until `stopping` is set, which ends those that are open, or nobody has come for long."""
        server = await asyncio.start_server(
            self._pass_on, sock=listener, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_S, limit=_CHUNK
        )
        async with server:
            while not stopping.is_set() and (self._passing or time.monotonic() - self._used_at < self._idle_s):
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), _CHECK_EVERY_S)
            server.close()
            await self._end_connections()

    async def _end_connections(self) -> None:
        """End those that are open: clients keep theirs, and nobody must wait for that."""
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker
        self._passing.add(task)
        try:
            if len(self._passing) <= self._max_connections:
                await self._connect(reader, writer)
        finally:
            self._passing.discard(task)
            self._used_at = time.monotonic()
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = await asyncio.wait_for(asyncio.open_connection(*self._target, limit=_CHUNK), _CONNECT_S)
        except (OSError, TimeoutError):
            await _refuse(writer)
            return
        try:
            ways = (_copy(reader, target[1]), _copy(target[0], writer))
            tasks = [asyncio.create_task(way) for way in ways]
            try:
                # TLS has no half of a connection: when one side ends, so does the other.
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(OSError, TimeoutError):
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), _CONNECT_S)
        finally:
            target[1].transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, TimeoutError):
        while data := await asyncio.wait_for(reader.read(_CHUNK), _SILENCE_S):
            writer.write(data)
            await writer.drain()


async def _refuse(writer: asyncio.StreamWriter) -> None:
    body = b'{"error": {"code": "ServiceUnavailable", "message": "The ParallelRun server does not answer."}}'
    head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n"
    writer.write(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    with suppress(OSError):
        await writer.drain()
        writer.close()
        await writer.wait_closed()
