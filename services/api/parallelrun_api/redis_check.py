"""Is this Redis one that jobs can be trusted to? Looked at once, when the server starts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from parallelrun_core import telemetry
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.fitness import check

if TYPE_CHECKING:
    from redis import Redis

log = telemetry.logger()

_LONGEST_PAUSE_S: Final = 5.0


async def wait_for_redis(client: Redis, *, may_forget: bool) -> None:
    """Return once Redis is there and fit for use; unlike the other services, the API answers in the meantime.

    Raises:
        UnfitRedis: it isn't fit.
    """
    pause_s = 0.05
    while True:
        try:
            version = await run_sync(partial(check, client, may_forget=may_forget))
        except CONNECTION_ERRORS as error:
            if pause_s > 1:
                log.warning("redis_awaited", error=str(error))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        else:
            log.info("redis_ready", version=version)
            return
