"""Keeps the logs of services short: each has a limit, beyond which its older half is put aside or dropped.

The services write to files that they have inherited open, so a file can't be exchanged under them; but they append, so
it can be emptied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 16 << 20
"""Of one log. As much again is kept in `<name>.log.1`: what came before."""


def trim(logs: Iterable[Path], max_bytes: int = MAX_BYTES) -> None:
    """Empty each log that is over the limit, after its end was copied to `<name>.1`.

    What a service writes between the two is lost, as is the copy on a full disk; then the log is emptied all the same.
    """
    for log in logs:
        with suppress(OSError):
            size = log.stat().st_size
            if size > max_bytes:
                with suppress(OSError):
                    _copy_end(log, size - max_bytes)
                os.truncate(log, 0)


def _copy_end(log: Path, begin: int) -> None:
    older = log.with_name(f"{log.name}.1")
    partial = log.with_name(f"{log.name}.1.part")
    with log.open("rb") as source, partial.open("wb") as target:
        source.seek(begin)
        shutil.copyfileobj(source, target)
    partial.replace(older)
