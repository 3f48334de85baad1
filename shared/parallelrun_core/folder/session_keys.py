"""The keys of a job's sessions, one file each, which only the user of the services can read.

They show the leader which sessions have reported what it finds on Redis (`parallelrun_core.store.seals`). A key that is
lost costs repeated work and no row: what it has sealed is taken from the journals.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import write_once

_BYTES: Final = 32
_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SessionKey:
    """The key of a session that begins. Thread-safe.

    Args:
        folder: of the keys of its job; made if it isn't there.
    """

    def __init__(self, folder: Path, session: str) -> None:
        self.value = secrets.token_bytes(_BYTES)
        self._path = folder / session
        self._lock = threading.Lock()
        self._is_published = False

    def publish(self) -> None:
        """Let leaders read it, durably: before the first report that it seals. Further calls do nothing.

        Raises:
            OSError: that can't be done for now.
        """
        with self._lock:
            if not self._is_published:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                with suppress(FileExistsError):  # an earlier attempt, whose end was not seen
                    write_once(self._path, self.value, mode=0o600)
                self._is_published = True


def read_key(folder: Path, session: str) -> bytes | None:
    """The key of a session; None if the job has no such session, or its key can't be read."""
    if not _SESSION.fullmatch(session):  # somebody who writes to Redis has chosen it
        return None
    try:
        fd = os.open(folder / session, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            key = file.read(_BYTES + 1)
        except OSError:
            return None
    return key if len(key) == _BYTES else None
