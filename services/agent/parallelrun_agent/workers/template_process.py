"""A template of workers on the agent's side: how it is started, told to fork, and ended.

A template runs packages of a job's environment, with the rights of the job's workers. So nothing that it says is
believed: the kernel names the process that a forked worker is, and it must be a child of the agent that is nothing else
yet.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_worker import frames

_ANSWER_S: Final = 1.0
"""Seconds in which a forked worker must say that it is there: the agent does nothing else meanwhile."""
_END_S: Final = 0.1
_POLL_S: Final = 0.001
_CREDENTIALS: Final = struct.Struct("3i")
_MOST_REASON_BYTES: Final = 200


class NotForked(Exception):
    """A template could not fork a worker; the message says why."""


class NotInTime(NotForked):
    """A template has not answered in time."""


class Outdated(NotForked):
    """A template has packages that are no longer those that are installed."""


@dataclass(frozen=True)
class TemplateKey:
    """The properties that workers have in common which may be forked from one template."""

    owner: str
    """The person whose jobs they work for."""
    job_id: str
    """Their job, if they have secrets or a user of its own; empty: the template may outlive it."""
    python: str
    user: WorkerUser
    code: str
    entry_script: str
    reads_tables: bool
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    """The environment variables that are the same for each of them, with the values of secrets."""
    inputs: str = field(compare=False, default="")
    """Path of the file that describes the inputs of one of their jobs."""

    def before_script(self) -> TemplateKey:
        """Return the key of a template that may have been begun before anybody knew the script, and whose it is."""
        return replace(self, owner="", code="", entry_script="", reads_tables=False)


@dataclass(frozen=True)
class ForkRequest:
    """A worker to be forked, with the agent's numbers of what it gets."""

    arguments: list[str]
    stdout: int
    stderr: int
    descriptors: list[int]
    folder: Path
    variables: dict[str, str]


class TemplateProcess:
    """A running template. For the agent's one thread alone.

    Args:
        is_taken: whether a process is a worker already, or something else that the agent has started.
    """

    def __init__(self, pid: int, channel: socket.socket, is_taken: Callable[[int], bool]) -> None:
        self.pid = pid
        self.channel = channel
        self._is_taken = is_taken

    @classmethod
    def start(cls, key: TemplateKey, is_taken: Callable[[int], bool], preload: Sequence[str] = ()) -> Self:
        """Start a template, which reports by itself when it can be forked.

        Args:
            preload: the modules that it imports before `tell_script`; empty: the key has its script.

        Raises:
            OSError: it can't be started.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_ANSWER_S)
        printed = os.memfd_create("printed")
        try:
            arguments = [str(theirs.fileno()), str(os.getpid()), key.code, key.entry_script, key.inputs, *preload]
            with key.user.acting():
                popen = subprocess.Popen(
                    [*worker_command(key.python), frames.TEMPLATE, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=printed,
                    cwd="/",
                    env=dict(key.environment),
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                    **key.user.start,
                )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(printed)
        popen.returncode = 0  # it is waited for by its id, in `close`
        return cls(popen.pid, ours, is_taken)

    def tell_script(self, key: TemplateKey) -> None:
        """Have it go on with the script of this key. If it has ended, that is what it reports."""
        with suppress(OSError):
            self.channel.send(json.dumps([key.code, key.entry_script, key.inputs]).encode())

    def report(self) -> str:
        """Return why it can't be forked, which it has just reported; empty: it can be."""
        try:
            packet = self.channel.recv(_MOST_REASON_BYTES)
        except OSError as error:
            return str(error)
        return "" if packet == frames.FORKS else packet.decode(errors="replace") or "it has ended"

    def fork(self, request: ForkRequest) -> int:
        """Fork a worker, which has begun when this returns; returns its process id.

        Raises:
            Outdated: there is none, but another template may fork one.
            NotForked: there is none, nor will there be.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            ours.settimeout(_ANSWER_S)
            order = frames.ForkOrder(request.arguments, request.descriptors, str(request.folder), request.variables)
            packet = json.dumps(order._asdict()).encode()
            if len(packet) > frames.MAX_ORDER:
                raise NotForked("its environment is too large")
            fds = [theirs.fileno(), request.stdout, request.stderr, *request.descriptors]
            try:
                socket.send_fds(self.channel, [packet], fds)
                theirs.close()  # so that the end of all others is the end of the connection
                pid = self._process_of(ours)
                ours.send(frames.GO)
            except OSError as error:
                if self._last_word() == frames.OUTDATED:
                    raise Outdated(frames.OUTDATED.decode()) from None
                kind = NotInTime if isinstance(error, TimeoutError) else NotForked
                raise kind(f"it doesn't fork: {error}") from None
        return pid

    def _last_word(self) -> bytes:
        """Return what it has reported since; empty: nothing."""
        self.channel.setblocking(False)  # it is not asked again
        with suppress(OSError):
            return self.channel.recv(_MOST_REASON_BYTES)
        return b""

    def _process_of(self, connection: socket.socket) -> int:
        """Return the worker that has sent the first packet, once that has come.

        Raises:
            OSError: none has come, or not from a new child of this process.
        """
        packet, ancillary, _, _ = connection.recvmsg(len(frames.GO), socket.CMSG_SPACE(_CREDENTIALS.size))
        if packet != frames.GO:
            raise ConnectionError("it has closed the connection of a worker")
        pid = next((_CREDENTIALS.unpack(data)[0] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS), 0)
        if pid <= 0 or self._is_taken(pid):
            raise PermissionError(f"process {pid} is no new worker")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises if it is no child of this process
        if os.getpgid(pid) != pid:
            raise PermissionError(f"process {pid} has no group of its own")
        return pid

    def close(self) -> None:
        """End it; workers that it has forked go on. The kernel may keep it for a while: who ends what dead workers have
        left behind waits for it, too."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.channel.close()
        deadline = time.monotonic() + _END_S
        with suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(_POLL_S)


def worker_command(python: str) -> Sequence[str]:
    """Return the command that starts a process of the worker's package by this interpreter, without its arguments."""
    # Python before 3.11, which a user's environment may have, doesn't know -P; the worker then does it itself.
    return (python, *(["-P"] if python == sys.executable else []), "-m", "parallelrun_worker")
