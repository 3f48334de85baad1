"""The preview of data: what `run()` would get, found out by the code that leaders and workers have for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun_core.answers.drafts import InputPreview
from parallelrun_core.errors import Unavailable
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.path_rule import PathRule, Places

_WAIT_S: Final = 120.0


class Bounds(msgspec.Struct, kw_only=True, frozen=True):
    """The bounds of a preview that a server makes for its clients."""

    root: str
    """The folder that the services share."""
    places: Places
    """The rule that says which files may be listed and opened."""
    memory_bytes: int
    """Memory of each process that reads."""

    def impose(self) -> PathRule:
        """Limit the memory of this process; returns the rule for what it may open."""
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (self.memory_bytes, self.memory_bytes))
        return PathRule(Path(self.root), self.places)


class PreviewRequest(msgspec.Struct, kw_only=True, frozen=True):
    """A request of a preview, as the process reads it that makes one."""

    spec: dict[str, Any]
    """A job spec as `job show` prints it."""
    rows: int
    guesses: bool = False
    """Find out how files are read that have no read step."""
    bounds: Bounds | None = None
    """None: whoever asks may read what this user may read."""


def preview(
    spec: JobSpec,
    rows: int = 20,
    *,
    guesses: bool = False,
    timeout_s: float = _WAIT_S,
    bounds: Bounds | None = None,
) -> list[InputPreview]:
    """Show the first rows of each input that a job cuts; a process of its own reads them, on this machine.

    Args:
        rows: how many of each table.
        guesses: find out how files are read that no read step is given for.
        bounds: of what is read for others.

    Raises:
        Unavailable: that process has failed, or took longer than `timeout_s` seconds.
    """
    request = PreviewRequest(spec=spec.model_dump(mode="json"), rows=rows, guesses=guesses, bounds=bounds)
    stdout = answer_of("parallelrun_master.planning.preview", msgspec.json.encode(request), timeout_s)
    return msgspec.json.decode(stdout, type=list[InputPreview])


def answer_of(module: str, request: bytes, timeout_s: float) -> bytes:
    """Run a module that looks at data, in a process of its own on this machine; returns what it answers.

    Raises:
        Unavailable: that process has failed, or took longer than `timeout_s` seconds.
    """
    command = [sys.executable, "-P", "-m", "parallelrun_core.service.launch", module]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            stdout, stderr = process.communicate(request, timeout=timeout_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with those that it has started
            if isinstance(error, subprocess.TimeoutExpired):
                raise Unavailable(f"The data were not read in {timeout_s:g} s.") from error
            raise
    if process.returncode:
        last_line = stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise Unavailable(f"The data can't be shown: {last_line[:2000]}")
    return stdout
