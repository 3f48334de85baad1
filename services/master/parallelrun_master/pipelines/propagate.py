"""Parts of a step's job that its pipeline shows, if that asks for it: a copy of its logs, and its metrics (reference
§1.4).

Workers write into these logs, so what is there is read as theirs: no link is followed, and all of it has a limit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import replace_file
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.metrics import pass_on
from parallelrun_core.spec.pipeline import Step
from parallelrun_core.untrusted.paths import open_beneath

_MOST_FILES: Final = 5_000
_MOST_BYTES: Final = 64 << 20
"""Of one file; what comes after that is left out."""
_MOST_IN_ALL: Final = 512 << 20
_OWN: Final = ("sys", "user")
"""Folders of the pipeline's own logs."""


def pass_on_from(step_name: str, step: Step, child: JobFolder, logs: Path) -> None:
    """Copy what a step passes on to the logs of its pipeline. Again, the same. A full disk fails nothing."""
    with suppress(OSError):
        if step.job.get("copy_logs_to_parent"):
            _copy(child.logs, logs / (f"step_{step_name}" if step_name in _OWN else step_name))
        if step.job.get("push_metrics_to_parent"):
            pass_on(child.logs, logs, step=step_name, prefix=str(step.job.get("metrics_name_prefix") or ""))


def _copy(logs: Path, target: Path) -> None:
    remaining_bytes = _MOST_IN_ALL
    for number, path in enumerate(_files(logs)):
        if number >= _MOST_FILES or remaining_bytes <= 0:
            return
        data = _content(logs, path, min(remaining_bytes, _MOST_BYTES))
        if data is not None:
            remaining_bytes -= len(data)
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            replace_file(copy, data)


def _files(logs: Path) -> Iterator[str]:
    for folder, _, names in os.walk(logs):  # which follows no links
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), logs)


def _content(logs: Path, path: str, limit: int) -> bytes | None:
    try:
        fd = open_beneath(logs, path)
    except (NotFound, UnsafePath):
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        return file.read(limit) if is_plain else None
