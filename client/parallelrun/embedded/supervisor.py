"""Keeps a set of processes running, and stops them all.

One thread starts every process and notes every end, so that there is one order of events. It has to live as long as
they do: the kernel ends a child when the thread that started it ends.

Each process has a session of its own. A Ctrl-C in the terminal therefore reaches only the command that the user sees,
and the children of a service can be ended with it as a group.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from parallelrun.embedded import guard, service_logs
from parallelrun.embedded.begun_template import BegunTemplate
from parallelrun.embedded.forking import ForkedProcess, TemplateLink, TemplateLost
from parallelrun_core.service import process as processes
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.service.template import Order

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
HEALTHY_AFTER_S: Final = 30.0
"""A service that lived this long is restarted without delay when it dies."""
_KILLED_WITHIN_S: Final = 10.0
_POLL_EVERY_S: Final = 1.0
_TRIM_EVERY_S: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """A process that is restarted when it dies."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    stage: int = 0
    """Services of a lower stage have ended before those of a higher one are stopped."""
    stop_s: float = 15.0
    """Seconds that it may take to end after SIGTERM."""
    fds: tuple[int, ...] = ()
    """Open files that it inherits."""
    nice: int = 0
    """By how much it lets others go first when CPUs are short, from 0 to 19."""
    module: tuple[str, ...] = ()
    """The module that `command` runs with its arguments, if a template may be forked instead; empty: it may not."""


@dataclass
class _Child:
    service: Service
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    began: float = 0.0
    deaths: int = 0
    restart_at: float | None = None


@dataclass(frozen=True)
class _Event:
    kind: Literal["start", "exit", "stop", "kill"]
    services: Sequence[Service] = ()
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Supervisor:
    """Starts services, restarts those that die, and stops them stage by stage. Safe to use from several threads.

    Args:
        logs: folder for `<name>.log` of each service: what it writes to stdout and stderr, up to a limit.
        folder: the services' current folder.
        mark: a variable, as `NAME=VALUE`, in the environment of every service. Every process with it is killed at the
            end, so nothing that a service started is left behind.
        scratch: folder that is removed if this process is killed.
        begin_template: begins the template from which services that name their module are forked; called in the thread
            that starts processes. None: each is started by itself.
        on_death: called with one line whenever a service ends unasked.
    """

    def __init__(
        self,
        *,
        logs: Path,
        folder: Path,
        mark: str,
        scratch: Path,
        begin_template: Callable[[], BegunTemplate] | None = None,
        on_death: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._logs = logs
        self._folder = folder
        self._mark = mark
        self._scratch = scratch
        self._begin_template = begin_template
        self._link: TemplateLink | None = None
        self._on_death = on_death
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._children: dict[str, _Child] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def start(self, services: Sequence[Service], meanwhile: Callable[[], object] = lambda: None) -> None:
        """Start services; returns once each has a process.

        Args:
            meanwhile: called while they start.

        Raises:
            RuntimeError: this supervisor has been stopped.
        """
        event = _Event("start", services)
        self._events.put(event)
        meanwhile()
        while not event.done.wait(_POLL_EVERY_S):
            if not self._thread.is_alive():
                raise RuntimeError("this supervisor has been stopped")

    def stop(self) -> None:
        """Stop everything in order; kill what takes too long. Returns when that is done; twice does no harm."""
        self._events.put(_Event("stop"))
        self._thread.join()

    def kill(self) -> None:
        """Kill everything at once. May be called while another thread, or an interrupted call, waits in `stop`."""
        self._events.put(_Event("kill"))
        self._thread.join()

    def deaths(self) -> dict[str, int]:
        """Return how often in a row each service has died soon after its start."""
        return {name: child.deaths for name, child in list(self._children.items())}

    def unsteady(self) -> list[str]:
        """Return the services that have died soon after their start, and have not been running for long since."""
        began_before = time.monotonic() - HEALTHY_AFTER_S
        children = list(self._children.items())
        return [name for name, child in children if child.deaths and not (child.process and child.began < began_before)]

    def log_of(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def pids(self) -> dict[str, int]:
        """The process id of each service that runs right now."""
        return {name: child.process.pid for name, child in list(self._children.items()) if child.process}

    def _run(self) -> None:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", str(guard.__file__), self._mark, str(self._scratch)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as watching:
            self._start_template()
            self._keep_running()
            if self._link is not None:
                self._link.close()
            guard.kill_marked(self._mark)
            watching.communicate(b".")

    def _keep_running(self) -> None:
        trim_at = time.monotonic() + _TRIM_EVERY_S
        while not self._stopping:
            restarts = [child.restart_at for child in self._children.values() if child.restart_at is not None]
            event = self._next(min([trim_at, *restarts]))
            if time.monotonic() >= trim_at:
                service_logs.trim(map(self.log_of, self._children))
                trim_at = time.monotonic() + _TRIM_EVERY_S
            if event is None:
                for child in self._children.values():
                    if child.restart_at is not None and child.restart_at <= time.monotonic():
                        self._launch(child)
            elif event.kind == "start":
                for service in event.services:
                    self._children[service.name] = _Child(service)
                    self._launch(self._children[service.name])
                event.done.set()
            elif event.kind == "exit":
                self._handle_exit(event)
            else:
                self._end(by_force=event.kind == "kill")

    def _next(self, until: float) -> _Event | None:
        """The next event, or None when its time is up."""
        try:
            return self._events.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None

    def _launch(self, child: _Child) -> None:
        child.restart_at = None
        child.began = time.monotonic()
        if child.deaths == 0 and (process := self._fork(child.service)) is not None:
            child.process = process
            return
        try:
            child.process = self._popen(child.service)
        except OSError as error:
            self._schedule_restart(child, f"can't be started: {error}")
        else:
            threading.Thread(target=self._watch, args=(child.process,), daemon=True).start()

    def _start_template(self) -> None:
        if self._begin_template is None:
            return
        try:
            template = self._begin_template()
        except OSError as error:
            self._on_death(f"their template can't be started: {error}; services are started by themselves")
            return
        self._link = TemplateLink(template, lambda forked: self._events.put(_Event("exit", process=forked)))

    def _fork(self, service: Service) -> ForkedProcess | None:
        """Fork a service from the template; None: it is to be started by itself."""
        if self._link is None or not service.module:
            return None
        name, _, value = self._mark.partition("=")
        order = Order(
            module=service.module[0],
            arguments=[*service.module[1:]],
            environment={**service.environment, name: value},
            shown_as=_with_mark(service.command, self._mark),
            folder=str(self._folder),
            nice=service.nice,
        )
        with self.log_of(service.name).open("ab") as log:
            try:
                return self._link.fork(order, log.fileno())
            except (OSError, TemplateLost) as error:
                why = f"the template of services is gone ({error!r}); from now on they are started by themselves"
        self._on_death(why)
        self._link.close()
        self._link = None
        return None

    def _popen(self, service: Service) -> subprocess.Popen[bytes]:
        wrapper = (sys.executable, "-I", "-S", str(processes.__file__), str(os.getpid()))
        name, _, value = self._mark.partition("=")
        with self.log_of(service.name).open("ab") as log:
            process = subprocess.Popen(
                [*wrapper, *_with_mark(service.command, self._mark)],
                cwd=self._folder,
                env={**service.environment, name: value},
                pass_fds=service.fds,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if service.nice:
            processes.be_nice(process.pid, service.nice)
        return process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        try:
            # Not reaped yet: until the supervisor has handled it, its process id can't be reused.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        finally:
            self._events.put(_Event("exit", process=process))

    def _reap(self, event: _Event) -> _Child | None:
        """Note the end of a process, and kill the rest of its group."""
        for child in self._children.values():
            if child.process is not None and child.process is event.process:
                _signal_group(child.process, signal.SIGKILL)
                child.process.wait()
                child.process = None
                return child
        return None

    def _handle_exit(self, event: _Event) -> None:
        child = self._reap(event)
        if child is not None and event.process is not None:
            self._schedule_restart(child, _describe(event.process.returncode or 0))

    def _schedule_restart(self, child: _Child, why: str) -> None:
        """Schedule a restart, after a pause that grows with each early death."""
        now = time.monotonic()
        child.deaths = 0 if now - child.began > HEALTHY_AFTER_S else child.deaths + 1
        child.restart_at = now + Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S).after_s(child.deaths)
        self._on_death(f"{child.service.name} {why}; it is being restarted")

    def _end(self, *, by_force: bool) -> None:
        self._stopping = True
        for child in self._children.values():
            child.restart_at = None
        for stage in sorted({child.service.stage for child in self._children.values()}):
            group = [child for child in self._children.values() if child.service.stage == stage]
            if not by_force:
                by_force = self._end_in_order(group)
            if by_force:
                self._end_by_force(group)

    def _end_in_order(self, group: list[_Child]) -> bool:
        """Stop these, and wait for their end; returns whether `kill` was called meanwhile."""
        for child in group:
            if child.process:
                child.process.terminate()
        deadline = time.monotonic() + max(child.service.stop_s for child in group)
        while any(child.process for child in group):
            event = self._next(deadline)
            if event is None:
                self._end_by_force(group)
                return False
            if event.kind == "exit":
                self._reap(event)
            elif event.kind == "kill":
                return True
            elif event.kind == "start":
                event.done.set()
        return False

    def _end_by_force(self, group: list[_Child]) -> None:
        for child in group:
            if child.process:
                _signal_group(child.process, signal.SIGKILL)
        deadline = time.monotonic() + _KILLED_WITHIN_S
        while any(child.process for child in group):
            event = self._next(deadline)
            if event is None:
                return  # it is in a system call that can't be interrupted; there is nothing left to try
            if event.kind == "exit":
                self._reap(event)
            elif event.kind == "start":
                event.done.set()


def _signal_group(process: subprocess.Popen[bytes] | ForkedProcess, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended meanwhile
        os.killpg(process.pid, number)


def _describe(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by {signal.Signals(-returncode).name}"
    return f"exited with code {returncode}"


def _with_mark(command: Sequence[str], mark: str) -> list[str]:
    """The command with the mark of its cluster, if it is one of ours: others can't hide their environment."""
    program, *arguments = command
    return [program, *(guard.option(mark) if program == sys.executable else ()), *arguments]
