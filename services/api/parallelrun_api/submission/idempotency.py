"""`Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a request that is sent twice is done once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from parallelrun_api.http.errors import KeyInFlight
from parallelrun_core.errors import InvalidInput

_KEY: Final = re.compile(r"[A-Za-z0-9_.:~-]{1,128}")


def checked_key(header: str | None) -> str:
    """The key, without the quotes that the draft puts around it; empty when there is none.

    Raises:
        InvalidInput: it is too long or has other characters.
    """
    if header is None:
        return ""
    key = header[1:-1] if len(header) > 1 and header[0] == header[-1] == '"' else header
    if not _KEY.fullmatch(key):
        raise InvalidInput.at(
            "/header/idempotency-key", "not a usable key", "1 to 128 letters, digits, '_', '.', ':', '~' or '-'"
        )
    return key


class Turns:
    """Requests with the same key go one after another: all but the first then find its answer. For one event loop."""

    def __init__(self, patience_s: float = 20.0) -> None:
        self._patience_s = patience_s
        self._taken: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until no other request with this key is being worked on; there is no waiting without a key.

        Raises:
            KeyInFlight: that takes too long.
        """
        if not key:
            yield
            return
        try:
            async with asyncio.timeout(self._patience_s):
                while taken := self._taken.get(key):
                    await taken.wait()
        except TimeoutError as error:
            raise KeyInFlight("The first request with this Idempotency-Key is still being worked on.") from error
        done = self._taken[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._taken[key]
            done.set()
