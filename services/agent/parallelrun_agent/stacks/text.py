"""Reads what faulthandler writes of a process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

from parallelrun_core.answers.stacks import StackFrame, ThreadStack
from parallelrun_worker import frames

MOST_THREADS: Final = 100
MOST_FRAMES: Final = 100
_MOST_CHARACTERS: Final = 500
_THREAD: Final = re.compile(
    r"(Current thread|Thread|Stack)(?: 0x[0-9a-f]+)?(?: \[(.*)\])? \(most recent call first\):$"
)
_FRAME: Final = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_OURS: Final = os.path.dirname(frames.__file__) + os.sep
_WRITES: Final = os.path.join(_OURS, "diagnostics", "stacks.py")
_STARTS: Final = ("<frozen runpy>", "runpy.py")


def threads_of(text: str, code: str, sanitize: Callable[[str], str]) -> list[ThreadStack]:
    """The threads in a dump, the main thread first. What isn't one is passed over: a script can write there, too.

    Args:
        code: the folder of the job's code.
        sanitize: makes words fit to be shown.
    """
    threads: list[tuple[bool, str, list[StackFrame]]] = []
    for line in text.splitlines():
        if (head := _THREAD.match(line)) and len(threads) < MOST_THREADS:
            threads.append((head[1] != "Thread", head[2] or "", []))
        elif threads and (frame := _FRAME.match(line)) and len(threads[-1][2]) < MOST_FRAMES:
            file, number, function = frame.groups()
            threads[-1][2].append(StackFrame(file=file, line=int(number) if number.isdigit() else 0, function=function))
    # The signal comes to the main thread, unless that doesn't take any; faulthandler names the oldest thread last.
    main = next((number for number, thread in enumerate(threads) if thread[0]), len(threads) - 1)
    ordered = [main, *(number for number in range(len(threads)) if number != main)] if threads else []

    def words(text: str) -> str:
        return sanitize(text)[:_MOST_CHARACTERS]

    return [
        ThreadStack(
            is_main=number == main,
            name=words(threads[number][1]),
            frames=[
                StackFrame(
                    file=words(each.file.removeprefix(code + os.sep)), line=each.line, function=words(each.function)
                )
                for each in _of_the_script(threads[number][2])
            ],
        )
        for number in ordered
    ]


def _of_the_script(calls: list[StackFrame]) -> list[StackFrame]:
    """Without the engine's own frames: those through which it came there, and the one that writes this."""
    begin, end = 0, len(calls)
    while begin < end and calls[begin].file == _WRITES:
        begin += 1
    while end > begin and (calls[end - 1].file.startswith(_OURS) or calls[end - 1].file.endswith(_STARTS)):
        end -= 1
    return calls[begin:end]
