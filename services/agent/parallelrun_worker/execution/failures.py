"""Failures of a try: the errors of a worker itself, and reports of them to the agent."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from types import FrameType

from parallelrun_worker import frames
from parallelrun_worker.execution import gpu_memory
from parallelrun_worker.rows import BadReturn
from parallelrun_worker.script_api.script import WorkerBroken

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MAX_TRACEBACK = 16_000
_MASK = "***"


class NoRoom(Exception):
    """The node's disk has no room for the data of a mini-batch."""


class Unreadable(Exception):
    """The data of a mini-batch can't be read, so run() was not called."""

    def __init__(self, cause: BaseException) -> None:
        text = str(cause) if isinstance(cause, (OSError, ValueError, ImportError)) else repr(cause)
        super().__init__(f"The data can't be read: {text}")


class Unwritable(Exception):
    """Raised when the files that run() has written for an output in a store can't be handed to the agent."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"What the mini-batch has written can't be set aside for its upload: {cause}")


class RunTimeout(Exception):
    """Raised in place of the answer of a run() that has taken too long and was canceled by its worker."""


_CATEGORIES = {
    BadReturn: "BAD_RETURN",
    Unreadable: "INPUT_UNREADABLE",
    Unwritable: "OUTPUT_UNWRITABLE",
    RunTimeout: "RUN_TIMEOUT",
}


def describe(error: BaseException, code: str, masked: Sequence[str] = ()) -> bytes:
    """The error as JSON, with the traceback from the user's first line on, and paths as they are in the user's code.

    Args:
        code: the folder that the code was copied to for the job.
        masked: what the texts may not have in them. The agent hides it, too, but can't see what was cut in the middle.
    """
    import traceback

    frame = error.__traceback__
    while frame is not None and _leads_to_the_users_code(frame.tb_frame):
        frame = frame.tb_next
    try:
        message = f"{type(error).__name__}: {error}"
    except Exception:  # the user's own __str__ may be broken
        message = type(error).__name__
    text = "".join(traceback.format_exception(type(error), error, frame)) if frame else message
    category = _CATEGORIES.get(type(error)) or (
        gpu_memory.CATEGORY if gpu_memory.has_run_out(error) else "RUN_EXCEPTION"
    )
    if isinstance(error, WorkerBroken):
        category = "WORKER_BROKEN"
    if type(error) in _CATEGORIES:
        message = str(error)
    if isinstance(error, ModuleNotFoundError):
        message += f" (in the Python {sys.executable})"
    if isinstance(error, PermissionError):
        message += f" (as user {os.getuid()}, group {os.getgid()})"
    return report(category, message, text.replace(f'File "{code}{os.sep}', 'File "'), masked)


def report(category: str, message: str, text: str, masked: Sequence[str]) -> bytes:
    """A failure as JSON, with nothing in it that is to be masked, and not too long.

    Args:
        text: its traceback, or whatever else shows how it came about.
    """
    import json

    for each in masked:
        message, text = message.replace(each, _MASK), text.replace(each, _MASK)
    if len(text) > _MAX_TRACEBACK:  # where it began and where it ended; a long message is in the middle
        text = f"{text[: _MAX_TRACEBACK // 2]}\n…\n{text[-_MAX_TRACEBACK // 2 :]}"
    return json.dumps({"category": category, "message": message[:2000], "traceback": text}).encode()


def _leads_to_the_users_code(frame: FrameType) -> bool:
    """Return whether it is a frame of ours or of the import system."""
    file = frame.f_code.co_filename
    ours = file.startswith(os.path.dirname(frames.__file__) + os.sep)
    return ours or not os.path.dirname(file) or frame.f_globals.get("__name__", "").startswith("importlib")
