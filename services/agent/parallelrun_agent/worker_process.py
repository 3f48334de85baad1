"""One worker process as the agent holds it: how it is started, spoken to, heard, and ended.

It has its own session (so that it and its children can be killed as a group), its own working folder, its own files
for stdout and stderr, and no secret of ours in its environment.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from parallelrun_agent.line import Line
from parallelrun_core.recordlog import sync_folder
from parallelrun_worker import frames

_READ_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class WorkerPlan:
    """All that a worker is started with."""

    process: str
    code: Path
    entry_script: str
    argv: list[str]
    job_id: str
    logging_level: str
    environment: dict[str, str]
    working_folder: Path
    part: Path | None
    """Part file to create for its rows; None when no rows are kept."""
    stdout: Path
    stderr: Path


class WorkerProcess:
    """A running worker. The constructor starts it.

    Raises:
        OSError: it can't be started, or its part file can't be created.
    """

    def __init__(self, plan: WorkerPlan) -> None:
        self.process = plan.process
        self.part_name = plan.part.name if plan.part else ""
        self.line = Line()
        self.ready = False
        self.ending = False
        self.kill_reason = ""
        self.started = time.monotonic()
        self.part_fd = _create(plan.part) if plan.part else -1
        self._folder = plan.working_folder
        self._outbox: deque[bytes] = deque()
        self._heard = b""
        self._popen, self._control, self._worker_end, self.results = _start(plan, self.part_fd)
        self.pid = self._popen.pid
        self.pidfd = os.pidfd_open(self.pid)

    def deliver(self, mini_batch: int, paths: bytes) -> None:
        """Hand over a mini-batch: paths with NUL between them."""
        kind = frames.PATHS
        if len(paths) > frames.MAX_PACKET - frames.DELIVERY.size:
            file = self._folder / f".mini-batch-{mini_batch}"
            file.write_bytes(paths)
            kind, paths = frames.PATHS_IN_FILE, os.fsencode(file)
        self._outbox.append(frames.DELIVERY.pack(kind, mini_batch) + paths)
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes. What it doesn't take waits for the worker's next answer."""
        while self._outbox:
            try:
                self._control.send(self._outbox[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:  # it is dead; its exit is on its way to us
                self._outbox.clear()
                return
            self._outbox.popleft()

    def take_back(self) -> list[int]:
        """Take back every delivery that the worker has not read yet; returns their mini-batches."""
        packets = []
        while True:
            try:
                packet = self._worker_end.recv(frames.MAX_PACKET + 64, socket.MSG_DONTWAIT)
            except OSError:
                break
            if not packet:
                break
            packets.append(packet)
        packets += self._outbox
        self._outbox.clear()
        return [frames.DELIVERY.unpack_from(packet)[1] for packet in packets]

    def hear(self) -> Iterator[tuple[int, bytes]]:
        """Every whole frame that the worker has sent so far, as `(kind, payload)`; never waits."""
        while True:
            try:
                chunk = os.read(self.results, _READ_BYTES)
            except BlockingIOError:
                chunk = b""
            self._heard += chunk
            at = 0
            while at + frames.HEAD.size <= len(self._heard):
                kind, length = frames.HEAD.unpack_from(self._heard, at)
                end = at + frames.HEAD.size + length
                if end > len(self._heard):
                    break
                yield kind, self._heard[at + frames.HEAD.size : end]
                at = end
            self._heard = self._heard[at:]
            if len(chunk) < _READ_BYTES:
                return

    def end(self) -> None:
        """Ask for an orderly end: it finishes what it has, calls shutdown(), and exits."""
        if not self.ending:
            self.ending = True
            self._control.shutdown(socket.SHUT_WR)

    def kill(self, reason: str = "") -> None:
        """End it and its process group now; its exit follows as an event."""
        self.kill_reason = self.kill_reason or reason
        self.ending = True
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        """After its exit: end what is left of its group, and return the exit code (negative: signal)."""
        self.kill()  # before wait(), while its process id can't have passed to somebody else
        return self._popen.wait()

    def close(self) -> None:
        """Free everything but the part file, which the committer may still have to sync."""
        os.close(self.results)
        os.close(self.pidfd)
        self._control.close()
        self._worker_end.close()


def _create(part: Path) -> int:
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
    sync_folder(part.parent)
    return fd


def _start(plan: WorkerPlan, part_fd: int) -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket, int]:
    plan.working_folder.mkdir(parents=True, exist_ok=True)
    config = plan.working_folder / ".worker.json"
    config.write_text(
        json.dumps({
            "code": str(plan.code),
            "entry_script": plan.entry_script,
            "argv": plan.argv,
            "job_id": plan.job_id,
            "logging_level": plan.logging_level,
        })
    )  # fmt: skip
    control, worker_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    results, results_end = os.pipe()
    os.set_blocking(results, False)
    fds = [worker_end.fileno(), results_end, *([part_fd] if part_fd >= 0 else [])]
    command = [sys.executable, "-P", "-m", "parallelrun_worker"]
    command += [str(worker_end.fileno()), str(results_end), str(part_fd), str(config), str(os.getpid())]
    try:
        with _append(plan.stdout) as stdout, _append(plan.stderr) as stderr:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=plan.working_folder,
                env=plan.environment,
                pass_fds=fds,
                start_new_session=True,
            )
    except OSError:
        for end in (control, worker_end):
            end.close()
        os.close(results)
        raise
    finally:
        os.close(results_end)
    return popen, control, worker_end, results


def _append(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")
