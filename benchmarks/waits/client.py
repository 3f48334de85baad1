"""Calls of the service over connections that stay open. Entry scripts, the loop and Ray's actors all have this text."""

from __future__ import annotations

import asyncio


class Refused(Exception):
    """The service doesn't take the call now.

    Args:
        retry_after: the header of that name.
    """

    def __init__(self, retry_after: str) -> None:
        super().__init__(f"the service has refused a call: try again after {retry_after} s")
        self.headers = {"retry-after": retry_after}


class ServiceClient:
    """Opens as many connections as there are calls at once, and uses them again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(self, name: str) -> str:
        """Return the answer, which is the name that was sent.

        Raises:
            Refused: by a 429.
            OSError: the service is dead, or has died meanwhile.
        """
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(f"GET /{name} HTTP/1.1\r\nHost: service\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            status, headers = head[9:12], dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
            body = (await reader.readexactly(int(headers["Content-Length"]))).decode()
        except asyncio.IncompleteReadError as error:
            writer.close()
            raise ConnectionResetError("the service has died") from error
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))
        if status == b"429":
            raise Refused(headers["Retry-After"])
        return body
