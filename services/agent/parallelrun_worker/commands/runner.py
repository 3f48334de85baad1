"""The worker of a job with a command, and what a failed one has said last. To the agent, it is one like any other."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from parallelrun_worker import frames
from parallelrun_worker.commands import shell
from parallelrun_worker.commands.place import make_place
from parallelrun_worker.execution import gpu_memory
from parallelrun_worker.execution.failures import NO_ROOM, NoRoom, report
from parallelrun_worker.execution.runner import Runner
from parallelrun_worker.execution.user_script import UserScript
from parallelrun_worker.outputs import Outputs
from parallelrun_worker.script_api.entry_script import OF_A_COMMAND, settings_of

if TYPE_CHECKING:
    from mmap import mmap

_COMMAND_FOLDER = "command"
_SETTINGS_FILE = ".command.json"
_FOR_PYTHON = os.path.join(os.path.dirname(__file__), "for_python")
_PREPENDED = {"PATH": os.path.dirname(sys.executable), "PYTHONPATH": _FOR_PYTHON}
"""What comes first in these variables of a command."""
_NOT_RUN = shell.ProcessEnd(0, 0.0, 0)
_LAST_BYTES = 16 << 10
_LAST_LINES = 25
_LONGEST_LINE = 500
_SIGNAL_BASE = 128
_EXIT_CODE_HINTS = {
    126: " (a file in it can't be executed)",
    127: " (a program in it was not found)",
}


class _NoScript(UserScript):
    def __init__(self) -> None:
        self.init = self.shutdown = None


class CommandRunner(Runner):
    """Runs the job's command when it is given the mini-batch."""

    def __init__(self, config: frames.WorkerConfig, ring: mmap, control: int, results: int, part: int) -> None:
        super().__init__(ring, control, results, part)
        self._config = config
        self._folder = os.path.abspath(_COMMAND_FOLDER)
        self._settings = os.path.abspath(_SETTINGS_FILE)
        self._ended = _NOT_RUN

    def _begin(self, config: frames.WorkerConfig) -> UserScript:
        if config.uploaded:
            self._outputs = Outputs(config.uploaded, config.aside)
            self._outputs.begin()
        with open(os.open(self._settings, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(settings_of(config), file)
        return _NoScript()

    def _run(self, script: UserScript, kind: int, mini_batch: int, payload: bytes, tickets: int) -> None:
        began = time.perf_counter()
        self._ended = _NOT_RUN
        try:
            self._prepare()
            self._send(frames.LOADED, frames.LOAD.pack(mini_batch, 1, time.perf_counter() - began))
            self._log.write("INFO", f"Mini-batch {mini_batch}: the command begins.", at_once=True)
            began = time.perf_counter()
            self._run_shell()
            if self._outputs is not None:
                self._set_aside(self._outputs, mini_batch)
        except NoRoom as error:
            self._give_back(mini_batch, error, tickets)
        except BaseException as error:
            run_s = time.perf_counter() - began
            self._failed(error, tickets, mini_batch=mini_batch, items=1, run_s=run_s, process_s=self._ended.cpu_s)
        else:
            run_s = time.perf_counter() - began
            answer = frames.pack_result(
                frames.DONE, self._used(tickets), mini_batch=mini_batch, items=1, rows=1, run_s=run_s,
                process_s=self._ended.cpu_s,
            )  # fmt: skip
            self._answer(answer)
            self._log.write("INFO", f"Mini-batch {mini_batch}: the command took {run_s:.3f} s, done.", at_once=True)

    def _prepare(self) -> None:
        """Make the folder of the command.

        Raises:
            NoRoom: the disk has no room for a copy of the code.
        """
        links = {"logs": os.path.abspath("logs"), "outputs": self._config.output_dir}
        try:
            make_place(self._folder, self._config.code, links)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise NoRoom(error) from error
            raise

    def _run_shell(self) -> None:
        """Run the command.

        Raises:
            CommandFailed: it has failed.
        """
        outputs = [(fd, os.fstat(fd).st_size) for fd in (self._config.stdout, self._config.stderr)]
        self._ended = shell.run(
            self._config.command,
            folder=self._folder,
            environment={**_environment(), OF_A_COMMAND: self._settings},
            stdout=self._config.stdout,
            stderr=self._config.stderr,
        )
        shell.end_what_is_left()
        if self._ended.status:
            raise CommandFailed(self._ended.status, *(last_lines(fd, begin) for fd, begin in outputs))

    def _used(self, tickets: int) -> bytes:
        """Return what the command has used, as far as its processes were waited for."""
        used, ended = frames.Use(*frames.USE.unpack(self._meter.measure(tickets))), self._ended
        return frames.pack_use(
            used._replace(
                peak_bytes=max(used.peak_bytes, ended.peak_bytes),
                minor_faults=ended.minor_faults,
                major_faults=ended.major_faults,
                voluntary_switches=ended.voluntary_switches,
                involuntary_switches=ended.involuntary_switches,
            )
        )

    def _described(self, error: BaseException) -> bytes:
        if isinstance(error, CommandFailed):
            return report(error.category, str(error), "\n".join(error.last_lines), self._masked)
        return super()._described(error)


def _environment() -> dict[str, str]:
    """The worker's, in which `python` is that of the job, and what Python prints can be followed."""
    joined = {
        name: os.pathsep.join(filter(None, (before, os.environ.get(name)))) for name, before in _PREPENDED.items()
    }
    return {"PYTHONUNBUFFERED": "1", **os.environ, **joined}


class CommandFailed(Exception):
    """The command ended with an exit code other than 0, or was ended.

    Args:
        status: its exit code; negative: the signal that ended it.
        stdout: the last lines of that.
        stderr: the last lines of that; some programs print their errors to stdout, and only warnings here.
    """

    def __init__(self, status: int, stdout: list[str], stderr: list[str]) -> None:
        last_lines = [*stdout, *stderr]
        self.category = "SIGNAL" if status < 0 else "EXITED"
        if gpu_memory.says_so("\n".join(last_lines)):
            self.category = gpu_memory.CATEGORY
        self.last_lines = last_lines
        how = _by_signal(-status) if status < 0 else f"The command ended with exit code {status}{_meaning(status)}"
        ends = [next((line.strip() for line in reversed(lines) if line.strip()), "") for lines in (stderr, stdout)]
        last = " (on stdout: ".join(end[:_LONGEST_LINE] for end in ends if end)
        super().__init__(f"{how}: {last}{')' * all(ends)}" if last else f"{how}.")


def _by_signal(number: int) -> str:
    return f"The command was ended by signal {number} ({_name_of(number)}){_perhaps_memory(number)}"


def _meaning(code: int) -> str:
    if code > _SIGNAL_BASE and _name_of(code - _SIGNAL_BASE):
        number = code - _SIGNAL_BASE
        return f" (a program in it was ended by signal {number}, {_name_of(number)}{_perhaps_memory(number)})"
    return _EXIT_CODE_HINTS.get(code, "")


def _perhaps_memory(number: int) -> str:
    return ", perhaps by the kernel because memory ran out" if number == signal.SIGKILL else ""


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def last_lines(file: int, begin: int) -> list[str]:
    """The last lines of a file, as far as they were written since it had this size.

    Of a line that was written again and again, as a progress bar is, only what could be seen last.
    """
    try:
        size = os.fstat(file).st_size
        at = max(begin if begin <= size else 0, size - _LAST_BYTES)
        text = os.pread(file, _LAST_BYTES, at).decode("utf-8", "replace")
    except OSError:
        return []
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.rstrip().split("\n")]
    return [line for line in lines[-_LAST_LINES:] if line] if text.strip() else []
