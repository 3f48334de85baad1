"""Start of a worker process: its folder and files, its pipes, and itself, forked from a template or as a new Python.

It has its own process group (so that it and its children can be killed), its own working folder, its own files for
stdout and stderr, and none of our secrets in its environment. Its session is the agent's: Linux shares out CPUs among
sessions first, and with one each, many busy workers would leave the other services of their machine next to nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
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

Fork = Callable[[TemplateKey, ForkRequest], int]


class WorkerFiles(NamedTuple):
    """The files that a worker inherits."""

    streams: list[CappedLog]
    """The logs of `stdout`, `stderr`, and both of its children."""
    part_fd: int
    """The file for its rows; -1: none are stored."""
    stacks: StackMemory | None
    """The memory into which it writes its stacks; None: nothing of Python runs in it but ours."""


class StartedWorker(NamedTuple):
    """A worker process, and the agent's side of all that it shares with it."""

    pid: int
    pidfd: int
    is_forked: bool
    ring: DeliveryRing
    control: int
    """The pipe for tickets of mini-batches."""
    worker_end: int
    """Another end of `control` like the worker's: what is read from it is taken back."""
    results: int
    """The pipe for the worker's answers."""
    files: WorkerFiles


def start_worker(plan: WorkerPlan, fork: Fork | None) -> StartedWorker:
    """Start a worker; if that fails, nothing stays open.

    Args:
        fork: forks it from the template of a key; returns its process id, or -1: it must be started by itself.

    Raises:
        OSError: it can't be started, or its part file can't be created.
    """
    with ExitStack() as undo, ExitStack() as child_ends:
        files = _open_files(plan, undo)
        ring = DeliveryRing()
        undo.callback(ring.close)
        tickets, control = _pipe(child_ends, undo)
        results, answers = _pipe(undo, child_ends)
        # Opened anew, because the worker must wait at its end, and we must not at ours.
        worker_end = os.open(f"/proc/self/fd/{tickets}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        undo.callback(os.close, worker_end)
        os.set_blocking(control, False)
        os.set_blocking(results, False)
        permits = plan.open_permits() if plan.open_permits is not None else -1
        if permits >= 0:
            child_ends.callback(os.close, permits)
        request = _request(plan, files, (ring.fd, tickets, answers), permits)
        forked = fork(plan.template, request) if fork is not None and plan.template is not None else -1
        pid = forked if forked >= 0 else _execute(plan, request)
        pidfd = os.pidfd_open(pid)
        undo.pop_all()
    return StartedWorker(pid, pidfd, forked >= 0, ring, control, worker_end, results, files)


def _open_files(plan: WorkerPlan, undo: ExitStack) -> WorkerFiles:
    stacks = None if plan.config.command else StackMemory()
    if stacks is not None:
        undo.callback(stacks.close)
    for path in plan.own_logs:
        share_file(path, plan.user)
    streams = []
    for path in (plan.stdout, plan.stderr, plan.child_stdout, plan.child_stderr):
        streams.append(CappedLog(path, plan.max_log_bytes))
        undo.callback(streams[-1].close)
    part_fd = _create(plan.part) if plan.part else -1
    if part_fd >= 0:
        undo.callback(os.close, part_fd)
    return WorkerFiles(streams, part_fd, stacks)


def _create(part: Path) -> int:
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        sync_folder(part.parent)
    except OSError:
        os.close(fd)
        raise
    return fd


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """A new pipe, each end to be closed when its stack is left."""
    end, other = os.pipe()
    reading.callback(os.close, end)
    writing.callback(os.close, other)
    return end, other


def _request(plan: WorkerPlan, files: WorkerFiles, channel: tuple[int, int, int], permits: int) -> ForkRequest:
    """Prepare the worker's folder; returns how to start the worker with these descriptors."""
    stdout, stderr, child_stdout, child_stderr = (stream.fd for stream in files.streams)
    stacks = files.stacks.fd if files.stacks is not None else -1
    config = plan.config._replace(stdout=stdout, stderr=stderr, stacks=stacks, permits=permits)
    config_path = _prepare(plan, json.dumps(config._asdict()))
    optional = (fd for fd in (files.part_fd, stacks, permits) if fd >= 0)
    return ForkRequest(
        arguments=[*map(str, (*channel, files.part_fd, config_path, os.getpid()))],
        stdout=child_stdout,
        stderr=child_stderr,
        descriptors=[*channel, stdout, stderr, *optional],
        folder=plan.working_folder,
        variables=plan.own_variables,
    )


def _prepare(plan: WorkerPlan, config: str) -> Path:
    """Create the working folder; returns the path of the file with the worker's configuration in it."""
    config_path = plan.working_folder / ".worker.json"
    with plan.user.acting():
        plan.working_folder.mkdir(parents=True, exist_ok=True)
        plan.script_logs.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (plan.working_folder / "logs").symlink_to(plan.script_logs)
        _make_private(config_path)  # the arguments in it may hold secrets
        config_path.write_text(config)
    return config_path


def _make_private(path: Path) -> None:
    path.touch(0o600)


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
