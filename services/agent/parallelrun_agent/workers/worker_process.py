"""A worker process on the agent's side: how it is started, sent to, received from, and ended.

It has its own process group (so that it and its children can be killed), its own working folder, its own files for
stdout and stderr, and none of our secrets in its environment. Its session is the agent's: Linux shares out CPUs among
sessions first, and with one each, many busy workers would leave the other services of their machine next to nothing.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from parallelrun_agent.users.places import share_file
from parallelrun_agent.workers.capped_log import CappedLog
from parallelrun_agent.workers.delivery_ring import DeliveryRing
from parallelrun_agent.workers.plans import WorkerPlan
from parallelrun_agent.workers.stack_memory import StackMemory
from parallelrun_agent.workers.template_process import ForkRequest, TemplateKey, worker_command
from parallelrun_core.durable_files import sync_folder
from parallelrun_core.layout import PRIVATE_FILE
from parallelrun_worker import frames

_READ_BYTES = 1 << 16
_HEAD_BYTES = frames.HEAD.size
_TICKETS_AT_ONCE = select.PIPE_BUF // frames.TICKET.size
"""A pipe takes so many as a whole, or not at all."""
_QUIET_REFRESHES = 4


Fork = Callable[[TemplateKey, ForkRequest], int]


class NotAFrame(Exception):
    """Something other than the worker has written to its pipe: the script, most likely."""


class WorkerProcess:
    """A running worker, started by the constructor.

    Args:
        fork: forks a worker from the template of a key; returns its process id, or -1: it must be started by itself.

    Raises:
        OSError: it can't be started, or its part file can't be created.
    """

    def __init__(self, plan: WorkerPlan, fork: Fork | None = None) -> None:
        self.process = plan.process
        self.part_name = plan.part.name if plan.part else ""
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
        self._script_logs = plan.script_logs
        self._own_logs = plan.own_logs
        self._user = plan.user
        self._has_stacks = not plan.config.command
        self.stacks = None if plan.config.command else StackMemory()
        """Where it writes its stacks; None: nothing of Python runs in it but ours."""
        with ExitStack() as undo:
            if self.stacks is not None:
                undo.callback(self.stacks.close)
            for path in plan.own_logs:
                share_file(path, plan.user)
            self._streams = []
            for path in (plan.stdout, plan.stderr, plan.child_stdout, plan.child_stderr):
                self._streams.append(CappedLog(path, plan.max_log_bytes))
                undo.callback(self._streams[-1].close)
            self._stderr = self._streams[1]
            self.part_fd = _create(plan.part) if plan.part else -1
            if self.part_fd >= 0:
                undo.callback(os.close, self.part_fd)
            stacks = self.stacks.fd if self.stacks is not None else -1
            started = _start(plan, self.part_fd, [stream.fd for stream in self._streams], stacks, fork)
            self.pid, self.is_forked, self.ring, self.control, self._worker_end, self.results = started
            undo.pop_all()
        self.pidfd = os.pidfd_open(self.pid)

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

    def _unread(self) -> bytes:
        """Tickets that the worker has not read, which it can't any more then; none when there are no more."""
        try:
            return os.read(self._worker_end, 1 << 16)
        except BlockingIOError:
            return b""

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
        if not self._has_stacks:
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


def _create(part: Path) -> int:
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        sync_folder(part.parent)
    except OSError:
        os.close(fd)
        raise
    return fd


class _Started(NamedTuple):
    """A process, and our ends of what connects us with it."""

    pid: int
    is_forked: bool
    ring: DeliveryRing
    control: int
    worker_end: int
    """Another end of `control` like the worker's: what is read from it is taken back."""
    results: int


def _start(plan: WorkerPlan, part_fd: int, streams: list[int], stacks: int, fork: Fork | None) -> _Started:
    stdout, stderr, child_stdout, child_stderr = streams
    with ExitStack() as undo, ExitStack() as child_ends:
        ring = DeliveryRing()
        undo.callback(ring.close)
        tickets, control = _pipe(child_ends, undo)
        results, answers = _pipe(undo, child_ends)
        # Opened anew, because the worker must wait at its end, and we must not at ours.
        worker_end = os.open(f"/proc/self/fd/{tickets}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        undo.callback(os.close, worker_end)
        permits = plan.open_permits() if plan.open_permits is not None else -1
        if permits >= 0:
            child_ends.callback(os.close, permits)
        config_path = _prepare(plan, streams, stacks, permits)
        os.set_blocking(control, False)
        os.set_blocking(results, False)
        fds = [ring.fd, tickets, answers, stdout, stderr, *(fd for fd in (part_fd, stacks, permits) if fd >= 0)]
        request = ForkRequest(
            arguments=[*map(str, (ring.fd, tickets, answers, part_fd, config_path, os.getpid()))],
            stdout=child_stdout,
            stderr=child_stderr,
            descriptors=fds,
            folder=plan.working_folder,
            variables=plan.own_variables,
        )
        forked = fork(plan.template, request) if fork is not None and plan.template is not None else -1
        pid = forked if forked >= 0 else _execute(plan, request)
        undo.pop_all()
    return _Started(pid, forked >= 0, ring, control, worker_end, results)


def _execute(plan: WorkerPlan, request: ForkRequest) -> int:
    """Start the worker by itself; returns its process id."""
    with plan.user.acting():  # the working folder may be closed to others
        popen = subprocess.Popen(
            [*worker_command(plan.python), *request.arguments],
            stdin=subprocess.DEVNULL,
            stdout=request.stdout,
            stderr=request.stderr,
            cwd=request.folder,
            env=plan.environment,
            pass_fds=request.descriptors,
            process_group=0,
            **plan.user.start,
        )
    popen.returncode = 0  # it is waited for by its id, in `reap`
    return popen.pid


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """A new pipe, each end to be closed when its stack is left."""
    end, other = os.pipe()
    reading.callback(os.close, end)
    writing.callback(os.close, other)
    return end, other


def _prepare(plan: WorkerPlan, streams: list[int], stacks: int, permits: int) -> Path:
    """Create the working folder; returns the path of the file with the worker's configuration in it."""
    stdout, stderr, *_ = streams
    config = plan.config._replace(stdout=stdout, stderr=stderr, stacks=stacks, permits=permits)
    config_path = plan.working_folder / ".worker.json"
    with plan.user.acting():
        plan.working_folder.mkdir(parents=True, exist_ok=True)
        plan.script_logs.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (plan.working_folder / "logs").symlink_to(plan.script_logs)
        _make_private(config_path)  # the arguments in it may hold secrets
        config_path.write_text(json.dumps(config._asdict()))
    return config_path


def _make_private(path: Path) -> None:
    path.touch(0o600)
