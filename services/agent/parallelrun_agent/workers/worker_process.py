"""A worker process on the agent's side: how mini-batches and answers are passed, and how it ends."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Self

from parallelrun_agent.workers.plans import WorkerPlan
from parallelrun_agent.workers.worker_start import Fork, StartedWorker, start_worker
from parallelrun_worker import frames

_READ_BYTES = 1 << 16
_HEAD_BYTES = frames.HEAD.size
_TICKETS_AT_ONCE = select.PIPE_BUF // frames.TICKET.size
"""A pipe takes so many as a whole, or not at all."""
_QUIET_REFRESHES = 4


class NotAFrame(Exception):
    """Something other than the worker has written to its pipe: the script, most likely."""


class WorkerProcess:
    """A running worker: what it is sent, what it answers, and its end. `start` makes one."""

    def __init__(self, plan: WorkerPlan, started: StartedWorker) -> None:
        self.process = plan.process
        self.part_name = plan.part.name if plan.part else ""
        self.part_fd = started.files.part_fd
        self.pid = started.pid
        self.pidfd = started.pidfd
        self.is_forked = started.is_forked
        self.ring = started.ring
        self.control = started.control
        self.results = started.results
        self.stacks = started.files.stacks
        """The memory into which it writes its stacks; None: nothing of Python runs in it but ours."""
        self.is_watched = True
        """Its pipe is being watched."""
        self.is_closed = False
        """The worker has closed its end of the pipe."""
        self.is_trusted = True
        """Nothing else has written to the pipe."""
        self.peak_bytes = 0
        """The most memory that it had, known after its end."""
        self._asked_to_end = 0.0
        # Beside the script's own folder, which the script may empty or remove.
        self._waiting_files = plan.working_folder.with_name(f".{plan.process}")
        self._outbox: deque[tuple[int, int, bytes]] = deque()
        self._quiet_refreshes = 0
        self._received = b""
        self._worker_end = started.worker_end
        self._streams = started.files.streams
        self._stderr = started.files.streams[1]
        self._script_logs = plan.script_logs
        self._own_logs = plan.own_logs
        self._user = plan.user

    @classmethod
    def start(cls, plan: WorkerPlan, fork: Fork | None = None) -> Self:
        """Start a worker.

        Args:
            fork: forks it from the template of a key; returns its process id, or -1: it must be started by itself.

        Raises:
            OSError: it can't be started, or its part file can't be created.
        """
        return cls(plan, start_worker(plan, fork))

    def deliver(self, mini_batch: int, payload: bytes, kind: int = frames.PATHS) -> None:
        """Add a mini-batch to what `send` hands over: paths with NUL between them, or JSON when it is described.

        Raises:
            OSError: it is a long one, and the file for it can't be written.
        """
        if len(payload) > frames.MAX_PAYLOAD:
            file = self._waiting_files / f"mini-batch-{mini_batch}"
            with self._user.acting():
                self._waiting_files.mkdir(parents=True, exist_ok=True)
                file.write_bytes(payload)
            kind = frames.BY_FILE[kind]
            payload = os.fsencode(file)
        self._outbox.append((kind, mini_batch, payload))

    def send(self) -> None:
        """Hand over as much as ring and pipe take. The rest waits for the worker's next answer.

        Raises:
            OSError: the worker can't be handed anything any more.
        """
        while self._outbox:
            begin = self.ring.end
            tickets = []
            for kind, mini_batch, payload in islice(self._outbox, _TICKETS_AT_ONCE):
                position = self.ring.put(payload)
                if position < 0:
                    break
                tickets.append(frames.TICKET.pack(kind, mini_batch, position, len(payload)))
            if not tickets:
                return
            try:
                os.write(self.control, b"".join(tickets))
            except BlockingIOError:
                self.ring.rewind(begin)
                return
            for _ in tickets:
                self._outbox.popleft()

    def set_width(self, width: int) -> None:
        """Tell it how many mini-batches to run at once; those in the pipe are begun before it reads that."""
        with suppress(OSError):  # the pipe is full, so it has enough to do as it is
            os.write(self.control, frames.TICKET.pack(frames.WIDTH, width, 0, 0))

    def take_back(self) -> list[int]:
        """Take back every delivery that the worker has not read yet; returns their mini-batches."""
        tickets = b"".join(iter(self._unread, b""))
        mini_batches = []
        files = []
        for kind, mini_batch, position, length in frames.TICKET.iter_unpack(tickets):
            if kind not in frames.WITHOUT_PAYLOAD:
                mini_batches.append((mini_batch, position))
                if kind in frames.IN_FILE:
                    files.append(self.ring.get(position, length))
        if mini_batches:
            self.ring.rewind(mini_batches[0][1])
        files += [payload for kind, _, payload in self._outbox if kind in frames.IN_FILE]
        for file in files:
            with suppress(OSError), self._user.acting():  # the worker could have written any path there
                os.unlink(file)
        waiting = [mini_batch for _, mini_batch, _ in self._outbox]
        self._outbox.clear()
        return [mini_batch for mini_batch, _ in mini_batches] + waiting

    def receive(self) -> Iterator[tuple[int, bytes]]:
        """Every complete frame that the worker has sent so far, as `(kind, payload)`; never waits.

        Raises:
            NotAFrame: after the frames before it.
        """
        if self._outbox:  # what it has read since then has made room
            with suppress(OSError):  # the next delivery raises it again
                self.send()
        while self.is_trusted:
            try:
                chunk = os.read(self.results, _READ_BYTES)
            except BlockingIOError:
                return
            self.is_closed = not chunk
            self._quiet_refreshes = 0
            received = self._received + chunk
            at, size = 0, len(received)
            while (begin := at + _HEAD_BYTES) <= size:
                kind, length = frames.HEAD.unpack_from(received, at)
                if not frames.READY <= kind <= frames.WAITED or length > frames.MAX_FRAME:
                    raise NotAFrame(f"kind {kind}, {length} bytes")
                if begin + length > size:
                    break
                at = begin + length
                yield kind, received[begin:at]
            self._received = received[at:]
            if len(chunk) < _READ_BYTES:
                return

    def end(self) -> None:
        """Ask for an orderly end: it finishes what it has, calls shutdown(), and exits."""
        self._asked_to_end = time.monotonic()
        os.close(self.control)
        self.control = -1

    @property
    def ending_s(self) -> float:
        """Return how long ago it was asked to end; 0: it wasn't."""
        return time.monotonic() - self._asked_to_end if self._asked_to_end else 0.0

    def dump_stacks(self, why: str) -> None:
        """Have it write to its stderr where it hangs; it has a moment for that before it is killed."""
        if self.stacks is None:
            self._stderr.add(why)
            return
        self._stderr.add(f"{why} This is where it was:")
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, frames.DUMP_STACKS)

    def refresh_logs(self) -> bool:
        """Cut its output down to the limit; whether that was necessary. For calls a few times a second.

        When nothing has come from it for some of them, it is asked to write the lines that its own log has gathered.
        """
        self._quiet_refreshes += 1
        if self._quiet_refreshes == _QUIET_REFRESHES and not self._asked_to_end:
            with suppress(OSError):  # the pipe is full, so it is not idle
                os.write(self.control, frames.TICKET.pack(frames.FLUSH, 0, 0, 0))
        return sum(stream.trim() for stream in self._streams) > 0

    def kill(self) -> None:
        """End it and its process group now; its exit follows as an event."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):  # its script may have put it into another group
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> int:
        """After its exit: end what is left of its group, and return the exit code (negative: signal)."""
        self.kill()  # before waiting, while its process id can't belong to another process
        _, status, used = os.wait4(self.pid, 0)
        self.peak_bytes = used.ru_maxrss << 10
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """Free everything but the part file, which the committer may still have to sync."""
        os.close(self.results)
        os.close(self.pidfd)
        self.ring.close()
        if self.stacks is not None:
            self.stacks.close()
        os.close(self._worker_end)
        if self.control >= 0:
            os.close(self.control)
        for stream in self._streams:
            stream.close()
        self._user.remove(self._waiting_files)
        with suppress(OSError):  # the script has written something there
            self._script_logs.rmdir()
        if self._user.is_other:  # otherwise the worker creates those that it needs
            for path in self._own_logs:
                with suppress(OSError):
                    if not path.stat().st_size:
                        path.unlink()

    def _unread(self) -> bytes:
        """Tickets that the worker has not read, which it can't any more then; none when there are no more."""
        try:
            return os.read(self._worker_end, _READ_BYTES)
        except BlockingIOError:
            return b""
