"""`python [-P] -m parallelrun_worker template CHANNEL AGENT CODE SCRIPT INPUTS`: what workers are forked from.

CHANNEL is a socket (SOCK_SEQPACKET). The template reports on it, once, that it is ready (`frames.FORKS`), or why it
can't be forked. Then each packet of the agent orders a worker: `frames.ForkOrder` as JSON, with descriptors: the
worker's own socket, its stdout and stderr, and those that the worker is told of by their numbers. When packages have
been installed or removed meanwhile, it says so (`frames.OUTDATED`) in place of forking, and ends.

With more arguments, names of modules, it begins before the script is known, and imports these. The first packet is then
JSON of CODE, SCRIPT and INPUTS, whose tables must be read with them, or whose script begins with them.

A worker becomes a child of the agent, which is a subreaper: the process in between ends at once. It says so on its
socket, and begins when the agent answers: one that the agent no longer waits for runs nothing of the user's.

When the agent ends, so does this process.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import logging
import os
import socket
import sys
import threading
import time
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from parallelrun_worker.frames import FORKS, GO, MAX_ORDER, MOST_DESCRIPTORS, OUTDATED, ForkOrder
from parallelrun_worker.templates.fitness import (
    Unfit,
    check_fitness,
    check_start,
    state_of_process,
    times_of_packages,
)
from parallelrun_worker.templates.leading_imports import UserModuleGuard, leading_imports, may_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parallelrun_worker.mini_batches.mini_batch import Loader

_OURS = (
    "faulthandler",
    "functools",
    "mmap",
    "parallelrun_worker.diagnostics.stacks",
    "parallelrun_worker.execution.runner",
    "parallelrun_worker.script_api.costs",
    "parallelrun_worker.script_api.entry_script",
    "parallelrun_worker.tracking.imports",
)
"""What each worker imports before the script, with all that it imports."""
_POLL_S = 0.0005
_ADOPTED_WITHIN_S = 10.0


class WorkerTemplate:
    """Imports for the workers of a script, and forks them.

    Args:
        agent: the process id of the agent.
        code: the folder of the user's code.
        entry_script: a file below it, or the dotted path of a module in it.
        inputs: path of the file that describes the inputs of a job.
    """

    def __init__(self, channel: socket.socket, agent: int, code: str, entry_script: str, inputs: str) -> None:
        self._channel = channel
        self._agent = agent
        self._code = code
        self._entry_script = entry_script
        self._inputs = inputs

    def serve(self, preload: Sequence[str]) -> list[str]:
        """Fork workers until the agent closes the channel, which ends this process; returns in each worker.

        Args:
            preload: the modules to import before the script is known; empty: it is known.

        Returns:
            what a worker is started with (see `parallelrun_worker.__main__`).
        """
        gc.disable()  # what looks for garbage takes a tenth of the CPU of imports, and finds next to none
        try:
            check_start(self._channel.fileno())
            packages = times_of_packages()
            for module in _OURS:
                import_module(module)
            before = state_of_process()
            self._import(preload)
            check_fitness(before)
        except Unfit as unfit:
            self._end(str(unfit))
        except Exception as error:  # whatever it is, the first worker reports it better
            self._end(type(error).__name__)
        gc.freeze()  # workers look through none of it, and so go on sharing its memory
        gc.enable()
        self._channel.send(FORKS)
        while True:
            packet, fds, _, _ = socket.recv_fds(self._channel, MAX_ORDER, MOST_DESCRIPTORS)
            if not packet:
                os._exit(0)
            if times_of_packages() != packages:
                self._end(OUTDATED.decode())
            pid = os.fork()
            if pid == 0:
                return self._become_worker(packet, fds)
            os.waitpid(pid, 0)
            for fd in fds:
                os.close(fd)

    def _end(self, reason: str) -> None:
        self._channel.send(reason.encode(errors="replace"))
        os._exit(0)

    # What is imported

    def _import(self, preload: Sequence[str]) -> None:
        """Import what the workers will, in their order: what reads tables, then what the script begins with.

        Raises:
            Unfit: something of it is the user's own, or the workers would not import it.
        """
        if not hasattr(sys, "stdlib_module_names"):
            raise Unfit("this Python is older than 3.10")
        guard, before = UserModuleGuard(_python_path()), {*sys.modules}
        sys.meta_path.insert(0, guard)
        try:
            if preload:
                self._import_early(preload)
            path = self._script_path()
            guard.add({self._code, os.path.dirname(path)}, {*sys.modules} - before)
            loader = self._loader()
            libraries = loader.libraries()
            shared = list(takewhile(may_share, libraries))
            imports = list(leading_imports(_content_of(path))) if shared == libraries else []
            if not {*preload} <= {*shared, *(module for module, _ in imports)}:
                raise Unfit("the script doesn't begin with what was imported before it was known")
            for name in shared:
                __import__(name)
            if libraries and shared == libraries:
                loader.import_readers()
            for module, names in imports:
                __import__(module, {}, {}, names)
        except ImportError:
            if not guard.refused:
                raise
        finally:
            sys.meta_path.remove(guard)
            for folder in (self._code, os.path.dirname(self._script_path())):
                sys.path_importer_cache.pop(folder, None)
        if guard.refused:
            raise Unfit(f"the user has a module {guard.refused} of their own")

    def _import_early(self, modules: Sequence[str]) -> None:
        """Import what the script will need, and wait until it is known."""
        for module in modules:
            import_module(module)
        packet = self._channel.recv(MAX_ORDER)
        if not packet:
            os._exit(0)
        self._code, self._entry_script, self._inputs = json.loads(packet)

    def _script_path(self) -> str:
        path = os.path.join(self._code, self._entry_script)
        return path if os.path.isfile(path) else os.path.join(self._code, *self._entry_script.split(".")) + ".py"

    def _loader(self) -> Loader:
        """Return what knows which tables are among the inputs."""
        from parallelrun_worker.mini_batches.mini_batch import Loader

        return Loader(self._inputs)

    # Workers

    def _become_worker(self, packet: bytes, fds: list[int]) -> list[str]:
        """Fork the worker, in the process in between, which ends; returns in the worker, once the agent knows it."""
        try:
            if os.fork():
                os._exit(0)
            os.setpgid(0, 0)
            self._channel.close()
            order = ForkOrder(**json.loads(packet))
            agent = _take_descriptors(fds, order.descriptors)
            self._wait_for_adoption()
            os.chdir(order.folder)
            os.environ.update(order.variables)
            _show_as_worker(order.arguments)
            _begin_anew()
            agent.send(GO)  # from now on whatever fails is the worker's
            if agent.recv(len(GO)) != GO:
                os._exit(1)
            agent.close()
            return order.arguments
        except BaseException:
            os._exit(1)  # its socket is closed, so the agent starts this worker in another way

    def _wait_for_adoption(self) -> None:
        """Return once the process in between has ended, and the agent is the parent.

        Raises:
            TimeoutError: it isn't: it adopts nobody, or has ended.
        """
        deadline = time.monotonic() + _ADOPTED_WITHIN_S
        while os.getppid() != self._agent:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_POLL_S)


def _content_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _python_path() -> list[str]:
    """Return the folders that the environment adds to `sys.path`.

    Raises:
        Unfit: one of them is another one for each worker.
    """
    folders = os.environ.get("PYTHONPATH", "")
    if not folders:
        return []
    if not all(map(os.path.isabs, folders.split(os.pathsep))):
        raise Unfit("PYTHONPATH names a folder below the working folder")
    return folders.split(os.pathsep)


def _take_descriptors(fds: list[int], numbers: list[int]) -> socket.socket:
    """Give descriptors the numbers that they are to have: 1 and 2, then these; returns the socket that comes first."""
    beyond = max([*fds, *numbers]) + 1
    first, *moved = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, beyond) for fd in fds)
    for fd in fds:
        os.close(fd)
    for fd, number in zip(moved, (1, 2, *numbers)):  # noqa: B905 - Python 3.8 doesn't know strict
        os.dup2(fd, number, inheritable=number <= 2)
        os.close(fd)
    return socket.socket(fileno=first)


def _show_as_worker(arguments: list[str]) -> None:
    """Show the command of a worker that is started by itself, as far as that of the template leaves room."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    first, end = int(fields[45]), int(fields[46])  # arg_start, arg_end: fields 48 and 49 of proc(5)
    sys.orig_argv[:] = [*sys.orig_argv[: -len(sys.argv[1:])], *arguments]
    if first:  # 0: the kernel doesn't tell this process
        text = b"\0".join(map(os.fsencode, sys.orig_argv))[: end - first - 1]
        ctypes.memmove(first, text.ljust(end - first, b"\0"), end - first)


def _begin_anew() -> None:
    """Make what modules have noted about their process that of this one, and draw other random numbers than other
    workers; Python's own generator sees to that itself."""
    now: float = time.time()
    started = getattr(logging, "_startTime", None)  # record.relativeCreated counts from there
    if started is not None:
        setattr(logging, "_startTime", now if isinstance(started, float) else time.time_ns())  # noqa: B010
    main_thread = threading.main_thread()
    if hasattr(main_thread, "_set_native_id"):
        main_thread._set_native_id()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:
        process: Any = sys.modules["multiprocessing.process"]
        process.current_process().authkey = os.urandom(32)
        process.ORIGINAL_DIR = os.getcwd()
