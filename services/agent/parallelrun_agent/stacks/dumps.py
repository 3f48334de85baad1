"""Asks workers for their stacks, reads what faulthandler writes of them, and says what they are doing."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from parallelrun_agent.node.cgroups import PROC, read
from parallelrun_agent.node.proc import Stat, stat_of
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_agent.workers.stack_memory import StackMemory
from parallelrun_core.answers.stacks import Doing, StackFrame, ThreadStack, WorkerStacks
from parallelrun_worker import frames

_APART_S: Final = 0.25
"""Between the two stacks that are compared."""
_PATIENCE_S: Final = 2.0
_POLL_S: Final = 0.01
_QUIET_POLLS: Final = 3
"""The stack of the main thread is complete when it has not grown for so long: it has no end of its own."""
_BUSY: Final = 0.5
"""Of one CPU: a worker that uses more of it computes, whatever its main thread does."""
_MAY_BE_INTERRUPTED: Final[dict[str, frozenset[int]]] = {
    "x86_64": frozenset({35, 202, 230}),
    "aarch64": frozenset({98, 101, 115}),
}
"""System calls by number: futex, nanosleep, clock_nanosleep. Whoever waits in them goes on waiting after a signal; what
reads a file or a socket in a library's own C code may take the interruption for an error."""

NOT_YET: Final = (
    "It is being started, or its script has given the signals for this another meaning (SIGRTMAX - 2, - 3)."
)
NO_ANSWER: Final = (
    "It doesn't answer: it waits in the kernel, as for a disk that is away, is stopped, or blocks signals."
)
LOST: Final = "It has ended, or its script has closed the file into which it would write."
IN_C: Final = "It doesn't run Python: it is in C code that this line calls. Only its main thread is shown."
IN_A_CALL: Final = "It waits in a call of the system that is better not interrupted. Only its main thread is shown."
IN_ONE_LINE: Final = "It was in this line for all of {:.2g} s."
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


@dataclass
class AskedWorker:
    """A worker, with descriptors of its own for the thread that asks it, and what is known of it."""

    process: str
    pid: int
    pidfd: int
    memory: StackMemory
    trouble: str = ""
    threads: list[ThreadStack] = field(default_factory=list)
    stays: bool = False
    """Its main thread was in one place for the time between two stacks."""
    is_busy: bool = False

    def close(self) -> None:
        os.close(self.pidfd)
        self.memory.close()


def stacks_of(
    workers: Sequence[AskedWorker], *, code: str, sanitize: Callable[[str], str], user: WorkerUser
) -> list[WorkerStacks]:
    """Return what these workers are doing. Takes half a second, or up to four if some don't answer.

    Args:
        code: the folder of the job's code.
        sanitize: makes words fit to be shown.
        user: who the workers are.
    """
    began, before = time.monotonic(), [stat_of(worker.pid) for worker in workers]
    _ask_all(workers, user, all_threads=False)
    first = [[] if worker.trouble else threads_of(worker.memory.text(), code, sanitize) for worker in workers]
    time.sleep(_APART_S)
    passed_s, after = time.monotonic() - began, [stat_of(worker.pid) for worker in workers]
    _ask_all(_answering(workers), user, all_threads=False)
    for worker, was, stats in zip(workers, first, zip(before, after, strict=True), strict=True):
        worker.threads = [] if worker.trouble else threads_of(worker.memory.text(), code, sanitize)
        worker.stays = bool(was and worker.threads) and was[0].frames == worker.threads[0].frames
        worker.is_busy = _is_busy(*stats, passed_s)
    may_run = [worker for worker in _answering(workers) if _may_be_interrupted(worker, user)]
    _ask_all(may_run, user, all_threads=True)
    notes = {worker.process: IN_A_CALL for worker in _answering(workers) if worker not in may_run}
    for worker in may_run:
        if not worker.trouble and worker.memory.has_all_threads:
            worker.threads = threads_of(worker.memory.text(), code, sanitize)
        else:
            worker.memory.give_up()
            worker.trouble, notes[worker.process] = "", IN_C
    return [_described(worker, notes.get(worker.process, ""), passed_s) for worker in workers]


def _answering(workers: Sequence[AskedWorker]) -> list[AskedWorker]:
    return [worker for worker in workers if not worker.trouble]


def _ask_all(workers: Sequence[AskedWorker], user: WorkerUser, *, all_threads: bool) -> None:
    """Have all of them write at the same time, and wait for it. Who can't, or doesn't, has a `trouble` then."""
    for worker in workers:
        worker.trouble = _ask(worker, user, all_threads=all_threads)
    deadline = time.monotonic() + (_PATIENCE_S / 2 if all_threads else _PATIENCE_S)
    waiting = {worker.process: (worker, [0]) for worker in _answering(workers)}
    while waiting and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        for worker, sizes in list(waiting.values()):
            sizes.append(worker.memory.used)
            is_quiet = len(sizes) > _QUIET_POLLS and len({*sizes[-_QUIET_POLLS:]}) == 1 and sizes[-1] > 0
            if worker.memory.has_all_threads if all_threads else is_quiet:
                del waiting[worker.process]
    for worker, sizes in waiting.values():
        worker.trouble = "" if sizes[-1] and not all_threads else NO_ANSWER


def _ask(worker: AskedWorker, user: WorkerUser, *, all_threads: bool) -> str:
    """Send the signal, if that does no harm; otherwise, why not."""
    if not _takes_the_signals(worker.pid):
        return NOT_YET
    try:
        with user.acting():  # others can't see what a process has open
            is_ours = worker.memory.is_open_in(worker.pid)
        if not is_ours:
            return LOST
        worker.memory.begin(all_threads=all_threads)
        signal.pidfd_send_signal(worker.pidfd, frames.SHOW_THREADS if all_threads else frames.SHOW_STACK)
    except (FileNotFoundError, ProcessLookupError):
        return LOST
    except OSError as error:
        return f"It can't be asked: {error.strerror}."
    return ""


def _takes_the_signals(pid: int) -> bool:
    """Return whether the process has handlers for them: without one, it would end."""
    caught = next((line for line in read(PROC / str(pid) / "status").splitlines() if line.startswith("SigCgt:")), "")
    with suppress(ValueError):
        handled = int(caught.partition(":")[2], 16)
        return all(handled >> (number - 1) & 1 for number in (frames.SHOW_STACK, frames.SHOW_THREADS))
    return False


def _may_be_interrupted(worker: AskedWorker, user: WorkerUser) -> bool:
    """Return whether a signal that Python handles does no harm: its main thread computes, or waits as Python itself
    does."""
    with user.acting():  # others can't see in which call a process is
        call = read(PROC / str(worker.pid) / "syscall").strip().partition(" ")[0]
    if call in ("running", "-1"):  # -1: in none, and not running just now
        return True
    return call.isdigit() and int(call) in _MAY_BE_INTERRUPTED.get(os.uname().machine, ())


def _is_busy(before: Stat | None, after: Stat | None, passed_s: float) -> bool:
    if before is None or after is None:
        return False
    return (before.is_runnable and after.is_runnable) or after.cpu_s - before.cpu_s > _BUSY * passed_s


def _described(worker: AskedWorker, note: str, passed_s: float) -> WorkerStacks:
    doing: Doing = "computes" if worker.is_busy else "waits"
    if worker.trouble or not worker.threads:
        doing, note = "unknown", worker.trouble or NO_ANSWER
    elif not worker.threads[0].frames:
        doing, note = "waits_for_work", ""
    elif not note and worker.stays:
        note = IN_ONE_LINE.format(passed_s)
    return WorkerStacks(process=worker.process, pid=worker.pid, doing=doing, note=note, threads=worker.threads)


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
