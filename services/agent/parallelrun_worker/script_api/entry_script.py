"""The module that user scripts import: `from azureml_user.parallel_run import EntryScript` (reference §3.6).

No such package is installed. The folder `for_users` has it, and `parallelrun.entry_script` with the same class. That
folder is the last one on `sys.path`, so an installed package of such a name, or a module of the user's own, wins.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from parallelrun_worker.log_files import LineFile

if TYPE_CHECKING:
    from parallelrun_worker.diagnostics.prints import PrintMarks
    from parallelrun_worker.frames import WorkerConfig

OF_A_COMMAND = "_PARALLELRUN_COMMAND"
"""Of the processes of a command, the variable with the path of a file that has the settings, as JSON."""
_SETTINGS = ("job_id", "node", "process", "logs", "output_dir", "working_dir", "logging_level", "job")


def settings_of(config: WorkerConfig) -> dict[str, Any]:
    """The settings of a worker that its scripts can see."""
    return {key: getattr(config, key) for key in _SETTINGS}


def settings_of_a_command() -> dict[str, Any]:
    """Return the settings of the command that has started this process; none if it is a worker, or no job's at all."""
    path = os.environ.get(OF_A_COMMAND)
    if not path:
        return {}
    import json

    try:
        with open(path) as file:
            settings: dict[str, Any] = json.load(file)
    except (OSError, ValueError):  # the command is over, or has removed it
        return {}
    return settings


class EntryScript:
    """A worker's logger and its folders. There is one instance in each process.

    Args:
        logging_level: of `logger`; the job's when not given.
    """

    _settings: ClassVar[dict[str, Any]] = settings_of_a_command()
    _instance: ClassVar[EntryScript | None] = None
    _prints: ClassVar[PrintMarks | None] = None

    logger: logging.Logger
    """Writes to logs/user/entry_script_log/<node>/<process>.log.txt."""
    log_dir: str
    """The folder of that file, which exists."""
    output_dir: str
    """The folder of the job's output; also in the variable AZUREML_BI_OUTPUT_PATH."""
    working_dir: str
    """The job's folder on this node; each worker runs in a folder of its own below it."""
    agent_name: str
    """The name of the worker, such as `process003`."""

    def __new__(cls, logging_level: int | str | None = None) -> EntryScript:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._set_up()
        return cls._instance

    def __init__(self, logging_level: int | str | None = None) -> None:
        if logging_level is not None:
            self.logger.setLevel(logging_level)

    def _set_up(self) -> None:
        settings = self._settings
        self.agent_name = settings.get("process", "")
        self.output_dir = settings.get("output_dir") or os.environ.get("AZUREML_BI_OUTPUT_PATH") or os.getcwd()
        self.working_dir = settings.get("working_dir") or os.getcwd()
        logs = settings.get("logs", "")
        self.log_dir = os.path.join(logs, "user", "entry_script_log", settings["node"]) if logs else os.getcwd()
        self.logger = logging.getLogger("azureml_user.parallel_run")
        self.logger.setLevel(settings.get("logging_level", "INFO"))
        if logs:
            with contextlib.suppress(
                OSError
            ):  # the script's own error, when it writes there, is more helpful to its user
                os.makedirs(self.log_dir, exist_ok=True)
            self.logger.propagate = False
            path = os.path.join(self.log_dir, f"{self.agent_name}.log.txt")
            self.logger.addHandler(_FileHandler(path, self._prints))

    @property
    def dir(self) -> str:
        """The early name of `output_dir`."""
        return self.output_dir

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._settings,)


def _restore(settings: dict[str, Any]) -> EntryScript:
    """The instance of this process, which may be a child that has none yet."""
    if not EntryScript._settings:
        EntryScript._settings, EntryScript._instance = settings, None
    return EntryScript()


class _FileHandler(logging.Handler):
    """Writes each record at once: scripts log seldom, and may die at any moment."""

    def __init__(self, path: str, prints: PrintMarks | None) -> None:
        super().__init__()
        self._path = path
        self._prints = prints
        self._file: LineFile | None = None
        self._pid = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None or self._pid != os.getpid():  # a child's lines have its own process id
            self._file, self._pid = LineFile(self._path), os.getpid()
        try:
            message = self.format(record)
        except Exception:
            self.handleError(record)
            return
        if self._prints is not None:
            self._prints.logger.note(self._path)
        self._file.write(record.levelname, message, at_once=True)


def provide(config: WorkerConfig, prints: PrintMarks | None = None) -> None:
    """Make `EntryScript` importable for the user's script, and for processes that `multiprocessing` starts for it.

    Args:
        prints: gets a mark of each mini-batch that logs.
    """
    EntryScript._settings = settings_of(config)
    EntryScript._prints = prints
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "for_users"))
