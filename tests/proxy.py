"""A TCP proxy between one process and a server, such as Redis, that imitates the faults of networks."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Literal, Self
from urllib.parse import urlsplit

Mode = Literal["pass", "blackhole", "reset", "delay", "one-way", "half-open"]
"""What happens to bytes, of connections that are open and of new ones.

    pass        nothing
    blackhole   they wait for as long as this lasts, in both directions, and arrive late, as TCP would send them again
    reset       connections are reset, and new ones, too
    delay       what the server answers arrives late
    one-way     what the server answers is held back; what is sent to it arrives
    half-open   the server's side closes; the other side never learns of it, and new connections get no answer
"""

DELAY_S = 2.0
_HELD = 16
"""How many pieces of at most 64 KiB are read ahead of what has been passed on, in each direction of a connection."""


class Proxy:
    """Forwards connections. Use it in a `with` statement; `set()` a mode at any time.

    Args:
        target: `http://…`, or the unix socket of a Redis.
        host: the address to listen on.
        delay_s: how late answers are in the mode `delay`.

    Attributes:
        url: where it listens, in the form of its target.
    """

    def __init__(self, target: str, host: str = "127.0.0.1", *, delay_s: float = DELAY_S) -> None:
        self._host = host
        self._target = target
        self._delay_s = delay_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links: set[_Link] = set()
        self._mode: Mode = "pass"
        self._passing = asyncio.Event()
        self._answering = asyncio.Event()
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._accept, self._host, 0), self._loop
        ).result()
        self._server = server
        where = f"{self._host}:{server.sockets[0].getsockname()[1]}"
        self.url = f"http://{where}" if self._target.startswith("http:") else f"redis://{where}/0"
        self.set("pass")
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # so that transports get to close their sockets

    def set(self, mode: Mode) -> None:
        """Change what happens from now on."""
        asyncio.run_coroutine_threadsafe(self._set(mode), self._loop).result()

    async def _set(self, mode: Mode) -> None:
        self._mode = mode
        _allow(self._passing, mode in ("pass", "delay", "one-way"))
        _allow(self._answering, mode in ("pass", "delay"))
        if mode in ("reset", "half-open"):
            for link in list(self._links):
                link.reset() if mode == "reset" else link.drop_server()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "reset":
            reset(writer)
            return
        try:
            await self._passing.wait()
            to_server = await self._connect()
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        link = _Link(writer, to_server[1])
        self._links.add(link)
        try:
            with suppress(asyncio.CancelledError):  # by `_close`; asyncio would print it
                await asyncio.gather(
                    self._pump(reader, to_server[1], self._passing), self._pump(to_server[0], writer, self._answering)
                )
        finally:
            self._links.discard(link)
            link.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._target.startswith("http:"):
            target = urlsplit(self._target)
            return await asyncio.open_connection(target.hostname, target.port)
        return await asyncio.open_unix_connection(self._target.removeprefix("unix://"))

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, open_gate: asyncio.Event) -> None:
        coming: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_HELD)
        receiving = asyncio.create_task(self._receive(source, coming, is_answer=open_gate is self._answering))
        try:
            with suppress(OSError):
                while True:
                    due, chunk = await coming.get()
                    if (early_s := due - self._loop.time()) > 0:
                        await asyncio.sleep(early_s)
                    if not chunk:
                        break
                    await open_gate.wait()
                    target.write(chunk)
                    await target.drain()
        finally:
            receiving.cancel()
        if self._mode != "half-open":
            target.close()

    async def _receive(
        self, source: asyncio.StreamReader, coming: asyncio.Queue[tuple[float, bytes]], *, is_answer: bool
    ) -> None:
        """Note when each piece is due: an answer in two pieces is as late as one in one. An empty one is the end."""
        chunk = b"-"
        while chunk:
            try:
                chunk = await source.read(1 << 16)
            except OSError:
                chunk = b""
            late_s = self._delay_s if is_answer and self._mode == "delay" else 0.0
            await coming.put((self._loop.time() + late_s, chunk))


class _Link:
    """One connection through the proxy."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._client = client
        self._server = server

    def close(self) -> None:
        self._client.transport.abort()
        self._server.transport.abort()

    def reset(self) -> None:
        reset(self._client)
        reset(self._server)

    def drop_server(self) -> None:
        self._server.transport.abort()


def _allow(gate: asyncio.Event, is_open: bool) -> None:
    if is_open:
        gate.set()
    else:
        gate.clear()


def reset(writer: asyncio.StreamWriter) -> None:
    """Have the other side see that its connection was reset."""
    peer = writer.get_extra_info("socket")
    if peer is not None and peer.family == socket.AF_INET:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()
