"""The end of a command that has failed: its exit code, or the signal, and its last words."""

from __future__ import annotations

import os
import signal

from parallelrun_worker.execution import gpu_memory

_LAST_BYTES = 16 << 10
_LAST_LINES = 25
_LONGEST_LINE = 500
_BY_SIGNAL = 128
_KNOWN = {
    126: " (a file in it can't be executed)",
    127: " (a program in it was not found)",
}


class CommandFailed(Exception):
    """The command ended with an exit code other than 0, or was ended.

    Args:
        status: its exit code; negative: the signal that ended it.
        last_lines: of what it has printed.
    """

    def __init__(self, status: int, last_lines: list[str]) -> None:
        self.category = "SIGNAL" if status < 0 else "EXITED"
        if gpu_memory.says_so("\n".join(last_lines)):
            self.category = gpu_memory.CATEGORY
        self.last_lines = last_lines
        how = _by_signal(-status) if status < 0 else f"The command ended with exit code {status}{_meaning(status)}"
        last = next((line.strip() for line in reversed(last_lines) if line.strip()), "")
        super().__init__(f"{how}: {last[:_LONGEST_LINE]}" if last else f"{how}.")


def _by_signal(number: int) -> str:
    return f"The command was ended by signal {number} ({_name_of(number)}){_perhaps_memory(number)}"


def _meaning(code: int) -> str:
    if code > _BY_SIGNAL and _name_of(code - _BY_SIGNAL):
        number = code - _BY_SIGNAL
        return f" (a program in it was ended by signal {number}, {_name_of(number)}{_perhaps_memory(number)})"
    return _KNOWN.get(code, "")


def _perhaps_memory(number: int) -> str:
    return ", perhaps by the kernel because memory ran out" if number == signal.SIGKILL else ""


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def last_lines(file: int, begin: int) -> list[str]:
    """The last lines of a file, as far as they were written since it had this size.

    Of a line that was written again and again, as a progress bar is, only what could be seen last.
    """
    try:
        size = os.fstat(file).st_size
        at = max(begin if begin <= size else 0, size - _LAST_BYTES)
        text = os.pread(file, _LAST_BYTES, at).decode("utf-8", "replace")
    except OSError:
        return []
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.rstrip().split("\n")]
    return [line for line in lines[-_LAST_LINES:] if line] if text.strip() else []
