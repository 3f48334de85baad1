"""Removes what submissions leave: folders of those whose process was killed, and idempotency keys of earlier days."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync

from parallelrun_api.submission.submissions import Submissions
from parallelrun_core.folder.job_folder import abandoned
from parallelrun_core.layout import code_store
from parallelrun_core.service import telemetry
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.store.connection import RedisError

log = telemetry.logger()

_EVERY_S: Final = 3600
_ABANDONED_S: Final = 3600


class CleanUp:
    """Cleans up when the server starts, and each hour."""

    def __init__(self, root: Path, submissions: Submissions) -> None:
        self._root = root
        self._submissions = submissions

    async def run(self) -> None:
        """Clean up as long as the server runs; never returns."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                await run_sync(self._clean_up)
            except (RedisError, OSError) as error:
                log.warning("clean_up_delayed", error=str(error))
                await asyncio.sleep(backoff.next_s())
            else:
                backoff.reset()
                await asyncio.sleep(_EVERY_S)

    def _clean_up(self) -> None:
        self._submissions.begin_day()
        for folder in [*code_store(self._root).glob(".incoming-*"), *abandoned(self._root)]:
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)
