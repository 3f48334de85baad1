"""Begins the process of a service: forked from a template that has imported what services share, or by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from parallelrun.embedded import guard
from parallelrun.embedded.begun_template import BegunTemplate
from parallelrun.embedded.forking import ForkedProcess, TemplateLink, TemplateLost
from parallelrun_core.service import process as processes
from parallelrun_core.service.template import Order

ServiceProcess = subprocess.Popen[bytes] | ForkedProcess


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


class Launcher:
    """Begins processes. Used by one thread, with which they end.

    Args:
        logs: folder for `<name>.log` of each service.
        folder: the services' current folder.
        mark: a variable, as `NAME=VALUE`, in the environment of every service.
        on_note: called with one line when services can't be forked any more.
    """

    def __init__(self, *, logs: Path, folder: Path, mark: str, on_note: Callable[[str], None]) -> None:
        self._logs = logs
        self._folder = folder
        self._mark = mark
        self._on_note = on_note
        self._link: TemplateLink | None = None
        self._has_forked = self._has_settled = False

    def log_of(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def begin_template(self, begin: Callable[[], BegunTemplate], on_end: Callable[[ForkedProcess], None]) -> None:
        """Fork services that name their module from now on.

        Args:
            begin: begins the template.
            on_end: called in a thread of its own with each forked service that has ended.
        """
        try:
            self._link = TemplateLink(begin(), on_end)
        except OSError as error:
            self._on_note(f"their template can't be started: {error}; services are started by themselves")

    def close(self) -> None:
        """End the template, and services that it still has."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def share(self, services: Sequence[Service]) -> None:
        """Let the template import the modules of services that are about to be forked."""
        if self._link is not None and services and not self._has_settled:
            self._link.share(dict.fromkeys(service.module[0] for service in services if service.module))

    def settle(self) -> None:
        """Start services by themselves from now on, if some were forked: their template gives back its memory."""
        if self._link is not None and self._has_forked and not self._has_settled:
            self._has_settled = True
            self._link.settle()

    def fork(self, service: Service) -> ForkedProcess | None:
        """Fork a service from the template; None: it is to be started by itself."""
        if self._link is None or self._has_settled or not service.module:
            return None
        order = Order(
            module=service.module[0],
            arguments=[*service.module[1:]],
            environment=self._environment_of(service),
            shown_as=_with_mark(service.command, self._mark),
            folder=str(self._folder),
            nice=service.nice,
        )
        self._has_forked = True
        with self.log_of(service.name).open("ab") as log:
            try:
                return self._link.fork(order, log.fileno())
            except (OSError, TemplateLost) as error:
                why = f"the template of services is gone ({error!r}); from now on they are started by themselves"
        self._on_note(why)
        self.close()
        return None

    def popen(self, service: Service) -> subprocess.Popen[bytes]:
        """Start a service by itself.

        Raises:
            OSError: it can't be started.
        """
        wrapper = (sys.executable, "-I", "-S", str(processes.__file__), str(os.getpid()))
        with self.log_of(service.name).open("ab") as log:
            process = subprocess.Popen(
                [*wrapper, *_with_mark(service.command, self._mark)],
                cwd=self._folder,
                env=self._environment_of(service),
                pass_fds=service.fds,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if service.nice:
            processes.be_nice(process.pid, service.nice)
        return process

    def _environment_of(self, service: Service) -> dict[str, str]:
        name, _, value = self._mark.partition("=")
        return {**service.environment, name: value}


def _with_mark(command: Sequence[str], mark: str) -> list[str]:
    """The command with the mark of its cluster, if it is one of ours: others can't hide their environment."""
    program, *arguments = command
    return [program, *(guard.option(mark) if program == sys.executable else ()), *arguments]
