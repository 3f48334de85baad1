"""`Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a request that is sent twice is carried out once."""

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


class KeyLocks:
    """A lock for each key: of the requests with one key, all but the first find its result. For one event loop."""

    def __init__(self, patience_s: float = 20.0) -> None:
        self._patience_s = patience_s
        self._held: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Wait until no other request with this key is in progress, and keep others waiting. Without a key, do nothing.

        Raises:
            KeyInFlight: the wait takes too long.
        """
        if not key:
            yield
            return
        if key in self._held:
            try:
                async with asyncio.timeout(self._patience_s):
                    while unlocked := self._held.get(key):
                        await unlocked.wait()
            except TimeoutError as error:
                raise KeyInFlight("The first request with this Idempotency-Key is still in progress.") from error
        released = self._held[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[key]
            released.set()
