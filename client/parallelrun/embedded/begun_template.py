"""The template of services (`core/service/template.py`), begun: it imports while its owner goes on.

`parallelrun run` forks its own once it has imported what both need: two thirds of what each of them does, and a tenth
of all CPU of a trivial job from nothing. Whoever has threads, or modules of a user, starts one as a program.

Of ours, this module imports next to nothing: the first imports of others are to be quick ones.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, Self

from parallelrun.embedded.guard import option

if TYPE_CHECKING:
    import subprocess

_PREFIX: Final = "PARALLELRUN_"
_AT_IMPORT: Final = "PARALLELRUN_FAILPOINTS"
"""What modules read when they are imported. All other settings are told to each service."""
_PADDING: Final = "-" * 2048
"""Room for the command lines of services, see `show_as`."""
_OF_BOTH: Final = (
    "logging",
    "parallelrun.models",
    "parallelrun_core.assets.site",
    "parallelrun_core.code.entry_script_check",
    "parallelrun_core.datastores.registry",
    "parallelrun_core.folder.decisions",
    "parallelrun_core.intake.reading",
    "parallelrun_core.limits.definition",
    "parallelrun_core.pipelines.outputs",
    "parallelrun_core.service.template",
    "parallelrun_core.store.credentials",
    "subprocess",
    "urllib.request",
)
"""What services import, and `parallelrun run` as well, each with all that it imports."""
_LEAST_ROOM: Final = 512
"""Bytes for the command lines of services that a forked template must have."""


class BegunTemplate:
    """A template that has no owner yet who orders services of it.

    Args:
        mark: of its cluster, as `NAME=VALUE`.
        process: the template, a child of this process.
        channel: this side of its socket.
    """

    def __init__(self, mark: str, process: subprocess.Popen[bytes] | _Forked, channel: socket.socket) -> None:
        self.mark: Final = mark
        self.process: Final = process
        self.channel: Final = channel

    @classmethod
    def begin(cls, mark: str) -> Self:
        """Begin one, which ends with the thread that calls this; what goes wrong is on stderr.

        None of ParallelRun's settings, of which some are secret, is in its environment, which to others is also that of
        its services.

        Raises:
            OSError: it can't be started.
        """
        import subprocess

        channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            try:
                process = subprocess.Popen(
                    [*_command(mark), str(end.fileno()), str(os.getpid()), _PADDING],
                    cwd="/",
                    env=_environment(mark),
                    pass_fds=[end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                channel.close()
                raise
        return cls(mark, process, channel)

    @classmethod
    def fork(cls, mark: str) -> Self:
        """Begin one as a fork of this process, once that has imported what both need; by itself where a fork would be
        another than what is started.

        For a program that has just begun: it has one thread, and has imported nothing of a user's.

        Raises:
            OSError: it can't be started.
        """
        from parallelrun_core.service.launch import quick_imports

        if not _can_be_forked():
            return cls.begin(mark)
        if not sys.flags.safe_path:
            del sys.path[0]  # the folder of the program, in which anything may be named as a module
        with quick_imports():
            for module in _OF_BOTH:
                import_module(module)
            import_module("parallelrun_core.spec").JobSpec.model_rebuild()
        gc.enable()
        if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 - no path is needed
            return cls.begin(mark)  # a child would have the locks of threads that it doesn't have
        channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                channel.close()
                _become_template(mark, end.detach(), parent)
            except BaseException:
                sys.excepthook(*sys.exc_info())  # as the interpreter does at the end of a program
            finally:
                os._exit(1)
        end.close()
        return cls(mark, _Forked(pid), channel)

    def close(self) -> None:
        """End it, unless that has been done; its services end with it."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class _Forked:
    """A child of this process, with those parts of `subprocess.Popen` that are used of a template."""

    def __init__(self, pid: int) -> None:
        self.pid: Final = pid
        self._has_ended = False

    def poll(self) -> int | None:
        """Return None while it runs."""
        return self._wait(os.WNOHANG)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Return once it has ended."""
        self._wait(0)

    def _wait(self, options: int) -> int | None:
        if not self._has_ended:
            try:
                self._has_ended = os.waitpid(self.pid, options) != (0, 0)
            except ChildProcessError:  # another thread has waited, or SIGCHLD is ignored, as whoever started us left it
                self._has_ended = True
        return 0 if self._has_ended else None


def _can_be_forked() -> bool:
    from parallelrun_core.service.process import room_of_command

    # `python -m` without -P finds modules in the current folder of the user first.
    has_folder_of_user = sys.argv[0].endswith("__main__.py") and not sys.flags.safe_path
    return not has_folder_of_user and None not in (sys.stdout, sys.stderr) and room_of_command() >= _LEAST_ROOM


def _command(mark: str) -> Sequence[str]:
    # -P: a file such as `redis.py` in the user's current folder must not be imported.
    return sys.executable, *option(mark), "-P", "-m", "parallelrun_core.service.template"


def _environment(mark: str) -> dict[str, str]:
    name, _, value = mark.partition("=")
    inherited = {each: os.environ[each] for each in os.environ if not each.startswith(_PREFIX) or each == _AT_IMPORT}
    return {**inherited, name: value}


def _become_template(mark: str, channel: int, parent: int) -> None:
    """Be a template, in a process that was just forked, as one that was started by itself; returns only as an error."""
    from parallelrun_core.service.process import show_variables
    from parallelrun_core.service.template import serve

    gc.disable()  # as where services import; each enables its own
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - no path is needed
        if fd > 2 and fd != channel:
            with suppress(OSError):  # that of the listing
                os.close(fd)
    environment = _environment(mark)
    os.environ.clear()
    os.environ.update(environment)
    show_variables(environment)
    serve(channel, parent, [*_command(mark)])


def new_mark() -> str:
    """A mark for the processes of one cluster."""
    return f"CLUSTER_OF_PARALLELRUN={os.urandom(8).hex()}"
