"""Keeps a set of processes running, and stops them all.

One thread starts every process and notes every end, so that there is one order of events. It has to live as long as
they do: the kernel ends a child when the thread that started it ends.

Each process has a session of its own. A Ctrl-C in the terminal therefore reaches only the command that the user sees,
and the children of a service can be ended with it as a group.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parallelrun.embedded import guard, service_logs
from parallelrun.embedded.begun_template import BegunTemplate
from parallelrun.embedded.launcher import Launcher, Service, ServiceProcess
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.service.process import children_of

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
HEALTHY_AFTER_S: Final = 30.0
"""A service that lived this long is restarted without delay when it dies."""
_KILLED_WITHIN_S: Final = 10.0
_POLL_EVERY_S: Final = 1.0
_TRIM_EVERY_S: Final = 10.0
_SETTLED_S: Final = 2.0
"""When services have started, as a rule, and need the CPUs no more: the shortest jobs have ended before."""


@dataclass
class _Child:
    service: Service
    process: ServiceProcess | None = None
    began: float = 0.0
    deaths: int = 0
    restart_at: float | None = None


@dataclass(frozen=True)
class _Start:
    services: Sequence[Service]
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _Exit:
    process: ServiceProcess


@dataclass(frozen=True)
class _Stop:
    by_force: bool


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
        self._launcher = Launcher(logs=logs, folder=folder, mark=mark, on_note=on_death)
        self._mark = mark
        self._scratch = scratch
        self._begin_template = begin_template
        self._on_death = on_death
        self._events: queue.SimpleQueue[_Start | _Exit | _Stop] = queue.SimpleQueue()
        self._children: dict[str, _Child] = {}
        self._is_killing = False
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self, services: Sequence[Service], meanwhile: Callable[[], object] = lambda: None) -> None:
        """Start services, with the first ones the thread that starts them; returns once each has a process.

        Args:
            meanwhile: called while they start.

        Raises:
            RuntimeError: this supervisor has been stopped.
        """
        event = _Start(services)
        self._events.put(event)
        if self._thread.ident is None:
            self._thread.start()
        meanwhile()
        while not event.done.wait(_POLL_EVERY_S):
            if not self._thread.is_alive():
                raise RuntimeError("this supervisor has been stopped")

    def stop(self) -> None:
        """Stop everything in order; kill what takes too long. Returns when that is done; twice does no harm."""
        self._end(by_force=False)

    def kill(self) -> None:
        """Kill everything at once. May be called while another thread, or an interrupted call, waits in `stop`."""
        self._end(by_force=True)

    def _end(self, *, by_force: bool) -> None:
        self._events.put(_Stop(by_force=by_force))
        if self._thread.ident is not None:
            self._thread.join()

    def deaths(self) -> dict[str, int]:
        """Return how often in a row each service has died soon after its start."""
        return {name: child.deaths for name, child in list(self._children.items())}

    def unsteady(self) -> list[str]:
        """Return the services that have died soon after their start, and have not been running for long since."""
        began_before = time.monotonic() - HEALTHY_AFTER_S
        children = list(self._children.items())
        return [name for name, child in children if child.deaths and not (child.process and child.began < began_before)]

    def childless(self, names: Sequence[str]) -> list[str]:
        """Return those of these services that have started no process: whose workers are processes aren't ready yet."""
        pids = self.pids()
        return [name for name in names if name not in pids or children_of(pids[name]) == set()]

    def log_of(self, name: str) -> Path:
        return self._launcher.log_of(name)

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
            if self._begin_template is not None:
                self._launcher.begin_template(self._begin_template, self._note_exit)
            self._keep_running()
            self._end_stages()
            self._launcher.close()
            guard.kill_marked(self._mark)
            watching.communicate(b".")

    def _keep_running(self) -> None:
        """Start what is asked for, and restart what dies, until all of it is to end."""
        trim_at = time.monotonic() + _SETTLED_S
        while True:
            restarts = [child.restart_at for child in self._children.values() if child.restart_at is not None]
            event = self._next(min([trim_at, *restarts]))
            if time.monotonic() >= trim_at:
                service_logs.trim(map(self.log_of, self._children))
                self._launcher.settle()
                trim_at = time.monotonic() + _TRIM_EVERY_S
            match event:
                case None:
                    for child in self._children.values():
                        if child.restart_at is not None and child.restart_at <= time.monotonic():
                            self._launch(child)
                case _Start(services, done):
                    for number, service in enumerate(services):
                        self._children[service.name] = _Child(service)
                        self._launch(self._children[service.name])
                        if number == 0:  # it takes longest, and imports while its template does so for the others
                            self._launcher.share(services[1:])
                    done.set()
                case _Exit(process):
                    if (dead := self._reap(process)) is not None:
                        self._schedule_restart(dead, _describe(process.returncode or 0))
                case _Stop(by_force):
                    self._is_killing = by_force
                    return

    def _next(self, until: float) -> _Start | _Exit | _Stop | None:
        """The next event, or None when its time is up."""
        try:
            return self._events.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None

    def _launch(self, child: _Child) -> None:
        child.restart_at = None
        child.began = time.monotonic()
        # What has died is started by itself: it may be the template that doesn't suit it.
        if child.deaths == 0 and (process := self._launcher.fork(child.service)) is not None:
            child.process = process
            return
        try:
            child.process = self._launcher.popen(child.service)
        except OSError as error:
            self._schedule_restart(child, f"can't be started: {error}")
        else:
            threading.Thread(target=self._watch, args=(child.process,), daemon=True).start()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        try:
            # Not reaped yet: until the supervisor has handled it, its process id can't be reused.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        finally:
            self._note_exit(process)

    def _note_exit(self, process: ServiceProcess) -> None:
        self._events.put(_Exit(process))

    def _reap(self, process: ServiceProcess) -> _Child | None:
        """Note the end of a process, and kill the rest of its group; returns whose it was."""
        for child in self._children.values():
            if child.process is process:
                _kill_group(process)
                process.wait()
                child.process = None
                return child
        return None

    def _schedule_restart(self, child: _Child, why: str) -> None:
        """Schedule a restart, after a pause that grows with each early death."""
        now = time.monotonic()
        child.deaths = 0 if now - child.began > HEALTHY_AFTER_S else child.deaths + 1
        child.restart_at = now + Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S).after_s(child.deaths)
        self._on_death(f"{child.service.name} {why}; it is being restarted")

    def _end_stages(self) -> None:
        for stage in sorted({child.service.stage for child in self._children.values()}):
            group = [child for child in self._children.values() if child.service.stage == stage]
            if not self._is_killing:
                for child in group:
                    if child.process:
                        child.process.terminate()
                self._await_end(group, max(child.service.stop_s for child in group), is_orderly=True)
            for child in group:
                if child.process:
                    _kill_group(child.process)
            # What is in a system call that can't be interrupted stays; there is nothing left to try.
            self._await_end(group, _KILLED_WITHIN_S, is_orderly=False)

    def _await_end(self, group: Sequence[_Child], within_s: float, *, is_orderly: bool) -> None:
        """Wait until these have ended, but no longer than this, and in order only until `kill` is called."""
        deadline = time.monotonic() + within_s
        while any(child.process for child in group) and not (is_orderly and self._is_killing):
            match self._next(deadline):
                case None:
                    return
                case _Start(done=done):
                    done.set()
                case _Exit(process):
                    self._reap(process)
                case _Stop(by_force):
                    self._is_killing = self._is_killing or by_force


def _kill_group(process: ServiceProcess) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it ended meanwhile
        os.killpg(process.pid, signal.SIGKILL)


def _describe(returncode: int) -> str:
    if returncode < 0:
        return f"was killed by {signal.Signals(-returncode).name}"
    return f"exited with code {returncode}"
