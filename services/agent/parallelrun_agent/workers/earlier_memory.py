"""The memory of an earlier job's scripts, for the job that resumes from it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_EARLIER = ".earlier"


def take_over_memory(earlier: Path, folder: Path) -> None:
    """Link the files of an earlier job's memory into that of this job.

    Links need no room, and stay when the earlier job is deleted. A file that can't be linked is left out: what was
    remembered in it is asked for again.
    """
    with suppress(OSError):
        (folder / _EARLIER).mkdir(parents=True, exist_ok=True)
    for file in sorted(earlier.glob("*/*.jsonl")):
        name = (
            file.name if file.parent.name == _EARLIER else f"{earlier.parents[2].name}.{file.parent.name}.{file.name}"
        )
        with suppress(OSError):
            os.link(file, folder / _EARLIER / name, follow_symlinks=False)
