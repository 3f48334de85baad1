"""A service that answers after 50 ms, takes 200 calls at once, and refuses what is beyond its rate.

`python -m benchmarks.waits.service PORT LOG RATE`: LOG gets a line for each call when it begins, `TIME NAME`, by the
monotonic clock, and `TIME -` for each that is refused. RATE: calls in any 60 s; 0: any number.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from bisect import bisect_left
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

ANSWER_S: Final = 0.05
_AT_ONCE: Final = 200
_WINDOW_S: Final = 60.0
_TOLERANCE: Final = 1.005
_READY_S: Final = 30.0


class _Connection(asyncio.Protocol):
    """One client's connection: a request at a time."""

    def __init__(self, state: _State) -> None:
        self._state = state
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        name = self._received.split(b" ", 2)[1][1:]
        self._received = b""
        if self._state.takes(name):
            asyncio.get_running_loop().call_later(ANSWER_S, self._answer, name)
        else:
            self._transport.write(b"HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, name: bytes) -> None:
        self._state.at_once -= 1
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name))


class _State:
    """The calls that run, and when those of the last minute began."""

    def __init__(self, log: int, rate: int) -> None:
        self.at_once = 0
        self._log = log
        self._most = rate * _TOLERANCE
        self._begun: deque[float] = deque()

    def takes(self, name: bytes) -> bool:
        """Return whether a call may begin, and note it."""
        now = time.monotonic()
        while self._begun and self._begun[0] <= now - _WINDOW_S:
            self._begun.popleft()
        is_taken = self.at_once < _AT_ONCE and (not self._most or len(self._begun) < self._most)
        os.write(self._log, b"%.6f %s\n" % (now, name if is_taken else b"-"))
        if is_taken:
            self.at_once += 1
            self._begun.append(now)
        return is_taken


async def _serve(port: int, log: int, rate: int) -> None:
    state = _State(log, rate)
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(state), "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


@dataclass(frozen=True)
class Calls:
    """The calls that the service has taken, in their order."""

    times: list[float]
    """Monotonic, when each began."""
    names: list[str]
    refused: int

    @property
    def per_s(self) -> float:
        """Return how many began per second, from the first to the last."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])

    def between(self, first: float, last: float) -> Calls:
        """Return those that began within this time, without what was refused."""
        low, high = bisect_left(self.times, first), bisect_left(self.times, last)
        return Calls(self.times[low:high], self.names[low:high], 0)

    def busiest(self, window_s: float) -> int:
        """Return the most that began within any time of this length."""
        return max((bisect_left(self.times, t + window_s) - i for i, t in enumerate(self.times)), default=0)

    def quietest(self, window_s: float) -> int:
        """Return the fewest that began within any time of this length, from the first to the last."""
        ends = [t + window_s for t in self.times if t + window_s <= self.times[-1]]
        return min((bisect_left(self.times, end) - i for i, end in enumerate(ends)), default=0)


class Service:
    """The service as a process, in a `with` statement.

    Args:
        scratch: a folder for the log of calls, which outlives the process.
        rate: calls that it takes in any 60 s; 0: any number.
    """

    def __init__(self, scratch: Path, *, rate: int = 0) -> None:
        self._log = scratch / "calls.txt"
        self._rate = rate
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it can be called."""
        command = [sys.executable, "-m", "benchmarks.waits.service", str(self.port), str(self._log), str(self._rate)]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill it, with all calls that it has taken and not answered."""
        self._process.kill()
        self._process.wait()

    def take_calls(self) -> Calls:
        """Return the calls that were made since this was last asked."""
        lines = [line.split(" ") for line in self._log.read_text().splitlines()]
        with suppress(FileNotFoundError):
            os.truncate(self._log, 0)
        taken = [(float(at), name) for at, name in lines if name != "-"]
        return Calls([at for at, _ in taken], [name for _, name in taken], len(lines) - len(taken))


if __name__ == "__main__":
    _log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    asyncio.run(_serve(int(sys.argv[1]), _log, int(sys.argv[3])))
