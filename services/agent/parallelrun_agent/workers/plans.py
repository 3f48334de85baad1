"""Plans of workers: the name, the folders, the environment and the log files that one is started with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from parallelrun_agent.environments.job_python import JobPython
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.places import make_output
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_agent.workers.gpus import GpuPool
from parallelrun_agent.workers.inherited import inherited_variables
from parallelrun_agent.workers.local_folder import throw_away
from parallelrun_agent.workers.models import model_folder, view_of_script
from parallelrun_agent.workers.output_places import OutputPlaces, WorkerOutputs
from parallelrun_agent.workers.secrets import secret_values
from parallelrun_agent.workers.survivors import MARK, mark
from parallelrun_agent.workers.template_process import TemplateKey
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.job_span import variables_of
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.layout import Logs
from parallelrun_core.service.secret_source import SecretSource
from parallelrun_core.service.telemetry import logger
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.arguments import engine_arguments, input_arguments
from parallelrun_core.spec.command import command_variables
from parallelrun_core.spec.job import MOST_IN_FLIGHT
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.row_formats import row_format
from parallelrun_worker.frames import WorkerConfig

log = logger()

_OF_THE_AGENT = frozenset(
    {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "USER", "LOGNAME"}
)
_HOME = ".home"
_TEMPORARY = ".tmp"
_LOCAL = 0o770
_HOLD_UPS = 2
"""How many things that hang after shutdown() a worker can interrupt before its time is over."""
_EARLIER = ".earlier"


@dataclass(frozen=True, kw_only=True)
class WorkerPlan:
    config: WorkerConfig
    environment: dict[str, str]
    working_folder: Path
    part: Path | None
    """Part file to create for its rows; None when no rows are stored."""
    stdout: Path
    stderr: Path
    """The log of Python's own streams."""
    child_stdout: Path
    child_stderr: Path
    """The log of the process's real handles: output of children, and of libraries that aren't Python."""
    script_logs: Path
    """Folder for the files that the script writes below `logs/` in its working folder."""
    max_log_bytes: int
    """Bytes that each of the four files for output may get."""
    python: str = sys.executable
    """The interpreter that runs it."""
    user: WorkerUser = SAME_USER
    """The user that it runs as."""
    own_logs: tuple[Path, ...] = ()
    """Files to which it appends by name."""
    open_permits: Callable[[], int] | None = None
    """Returns a descriptor for it to ask for permits; None: its job has no limits."""
    template: TemplateKey | None = None
    """The key of the template that it may be forked from; None: it is started by itself."""
    own_variables: dict[str, str] = field(default_factory=dict)
    """The variables of its environment that this template lacks."""

    @property
    def process(self) -> str:
        return self.config.process


class PlanMaker:
    """Makes the plan of each next worker of one job on one node.

    Args:
        paths: of the inputs that are brought to the node, by name.
        tracking: variables that lead to the job's run of MLflow.
        open_permits: returns a descriptor for permits of these limits, for a job's process of this name.
    """

    def __init__(
        self,
        folder: JobFolder,
        record: JobRecord,
        spec: JobSpec,
        settings: AgentSettings,
        gpus: GpuPool,
        *,
        secrets: SecretSource,
        python: JobPython | None = None,
        paths: Callable[[], Mapping[str, str]] = dict,
        tracking: Callable[[], Mapping[str, str]] = dict,
        open_permits: Callable[[tuple[str, ...], str, str], int] | None = None,
    ) -> None:
        self.job_id = folder.job_id
        self._python = python
        self._paths = paths
        self._tracking = tracking
        self._open_permits = open_permits if spec.rate_limits else None
        self._secrets = secrets
        self._gpus = gpus
        self._folder = folder
        self._spec = spec
        self._node = settings.node
        self._settings = settings
        self.mask = Mask({"environment_variables": spec.environment_variables})
        """Hides what must not be reported; the values of secrets, too, from when a worker has them."""
        self._max_log_bytes = settings.max_log_bytes
        self._exit_s = settings.shutdown_seconds / (_HOLD_UPS + 1)
        self._code = folder.code(record)
        self._local = settings.local_folder / folder.job_id
        self.user = self._user = settings.worker_user(record.outermost)
        """Who the workers are."""
        self.upload_timeout_s = spec.run_invocation_timeout if spec.command else spec.task_overhead_timeout
        """How long what a mini-batch has written may be on its way to a store."""
        self._workers = gpus.workers(spec.max_concurrency_per_instance, settings.slots, spec.gpus_of_worker)
        self.outputs = OutputPlaces(folder, spec, self._local)
        """Where the workers write."""
        self._record = record
        self._environment = self._make_environment()
        self._of_job = {"AZUREML_RUN_ID": folder.job_id, **self._trace()}
        """Variables of which no two jobs have the same."""
        self._view: dict[str, Any] = {}
        self._is_prepared = False
        self._next_process = 0

    def _make_argv(self, spec: JobSpec, outputs: WorkerOutputs, secrets: dict[str, str]) -> list[str]:
        """Return what the entry script finds in `sys.argv`: the engine's options, the user's, the inputs (reference
        §1.2)."""
        user = spec.argv(outputs.paths, secrets)
        engine = engine_arguments(spec, outputs.main)
        return [spec.entry_script, *engine, *user, *input_arguments(spec)]

    def _with_local_paths(self) -> JobSpec:
        local = self._paths()
        changed = {
            name: job_input.model_copy(update={"path": local[name]})
            for name, job_input in self._spec.input_paths()
            if name in local
        }
        return self._spec.model_copy(update={"inputs": self._spec.inputs | changed}) if changed else self._spec

    def _make_environment(self) -> dict[str, str]:
        inherited = inherited_variables(self._settings)
        activated = self._python.variables(inherited) if self._python else {}
        if self._user.is_other:  # the agent's own are closed to it, and a shared one is open to other jobs
            inherited = {name: value for name, value in inherited.items() if name not in _OF_THE_AGENT}
            inherited |= {"HOME": str(self._local / _HOME), "TMPDIR": str(self._local / _TEMPORARY)}
        return {
            **inherited,
            **activated,
            MARK: mark(self._local.parent),
        }

    def _trace(self) -> dict[str, str]:
        """Return what makes spans of the script part of the job's trace."""
        with suppress(*UNREADABLE):
            return variables_of(self._folder, self._record, self._folder.generation(), self._settings.tracing())
        return {}

    def _make_folders(self) -> None:
        """Create what a script expects: the output's folder, and `logs` in the folder above the workers' own."""
        files = Logs(self._folder.logs).script_files(self._node)
        if self._spec.resume_from:
            earlier = JobFolder(self._settings.root, self._spec.resume_from)
            take_over_memory(Logs(earlier.logs).user_memory, Logs(self._folder.logs).user_memory)
        for folder in self.outputs.shared:
            with suppress(OSError):  # the script's own error, when it writes there, is more helpful to its user
                make_output(folder, self._user)
            if self._user.is_other and not self._user.can(folder, os.W_OK | os.X_OK):
                log.warning("output_closed_to_workers", job_id=self.job_id, folder=str(folder), user=self._user.uid)
        with suppress(OSError):
            for folder in (files, self._local):
                folder.mkdir(parents=True, exist_ok=True)
            (self._local / "logs").symlink_to(files)
            self._user.share(self._local, _LOCAL)
            if self._user.is_other:
                for name in (_HOME, _TEMPORARY):
                    self._user.make(self._local / name, 0o700)
            elif not os.access(os.path.expanduser("~"), os.W_OK):  # as in our images; libraries keep caches there
                self._user.make(self._local / _HOME, 0o700)
                self._environment |= {"HOME": str(self._local / _HOME)}
            self._of_job |= model_folder(self._spec, self._paths(), self._local, self._user)

    def _make_own_outputs(self, process: str, outputs: WorkerOutputs) -> None:
        """Create the folders of a worker that stand for outputs in stores."""
        output_folder = self.outputs.folder(process)
        for folder in (
            output_folder.parent,
            output_folder,
            *{Path(each).parent for each in outputs.live},
            *map(Path, outputs.live),
        ):
            self._user.make(folder)

    def _prepare(self) -> None:
        """Make, once, what all workers have in common."""
        if not self._is_prepared:
            self._make_folders()
            assets = self._settings.assets_root
            self._view = view_of_script(self._folder, self._record, self._spec, self._paths(), assets)
            self._is_prepared = True

    def next_plan(self, session: str) -> WorkerPlan:
        """The plan of the next worker; its name is never used again on this node for this job.

        Raises:
            SecretMissing: the node lacks a secret of the job.
            OSError: its folders can't be made.
        """
        secrets = secret_values(self._spec.secrets, self._settings, self._secrets)
        variables = self._spec.variables(secrets)
        self.mask.add([*secrets.values(), *variables.values()] if secrets else ())
        self._prepare()
        process = f"process{self._next_process:03d}"
        self._next_process += 1
        logs, node = Logs(self._folder.logs), self._node
        own_logs = logs.of_node(node)
        outputs = self.outputs.of(process)
        if outputs.live:
            self._make_own_outputs(process, outputs)
        gpu = self._gpus.take(f"{self.job_id}/{process}", self._spec.gpus_of_worker or Fraction(1))
        spec = self._with_local_paths()
        config = self._config(process, spec, outputs, secrets)
        own_variables = {
            **self._of_job,
            **self._tracking(),
            "AZUREML_BI_OUTPUT_PATH": outputs.main,
            **(command_variables(spec.inputs, outputs.paths) if spec.command else {}),
            **gpu,
        }
        return WorkerPlan(
            user=self._user,
            own_logs=self._own_logs(config),
            config=config,
            environment={**self._environment, **own_variables, **variables},
            template=self._template(variables),
            own_variables={name: value for name, value in own_variables.items() if name not in variables},
            working_folder=self._local / process,
            part=self._folder.layout.part(session, process) if self._spec.writes_rows else None,
            stdout=logs.stdout(node, process),
            stderr=logs.stderr(node, process),
            child_stdout=own_logs / f"{process}.stdout.txt",
            child_stderr=own_logs / f"{process}.stderr.txt",
            script_logs=logs.script_files(node) / process,
            python=self._executable,
            max_log_bytes=self._max_log_bytes,
            open_permits=self._permits_of(process),
        )

    @property
    def _executable(self) -> str:
        return self._python.executable if self._python else sys.executable

    def template(self) -> TemplateKey | None:
        """Return the key of the template of the next worker; None: it is started by itself.

        Raises:
            SecretMissing: the node lacks a secret of the job.
            OSError: the folders that all workers need can't be made.
        """
        self._prepare()
        return self._template(self._spec.variables(secret_values(self._spec.secrets, self._settings, self._secrets)))

    def _template(self, variables: dict[str, str]) -> TemplateKey | None:
        """Return the key of the template for a worker with these variables of the user's."""
        if self._spec.command:
            return None
        has_own_home = self._environment.get("HOME") == str(self._local / _HOME)
        return TemplateKey(
            owner=self._record.owner,
            job_id=self.job_id if variables or has_own_home else "",
            python=self._executable,
            user=self._user,
            code=str(self._code),
            entry_script=self._spec.entry_script,
            reads_tables=self._spec.reads_tables,
            environment=tuple(sorted({**self._environment, **variables}.items())),
            inputs=str(self._folder.layout.inputs),
        )

    def _config(self, process: str, spec: JobSpec, outputs: WorkerOutputs, secrets: dict[str, str]) -> WorkerConfig:
        """Return what a worker is told when it starts."""
        logs = Logs(self._folder.logs)
        return WorkerConfig(
            job_id=self.job_id,
            node=self._node,
            process=process,
            workers=self._workers,
            code=str(self._code),
            entry_script=self._spec.entry_script,
            argv=[] if spec.command else self._make_argv(spec, outputs, secrets),
            inputs=str(self._folder.layout.inputs),
            schemas=[str(self._folder.layout.schema(number)) for number in range(len(self._spec.input_data))],
            output=_output_settings(self._folder, spec),
            logs=str(logs.path),
            output_dir=outputs.main,
            uploaded=outputs.live,
            aside=outputs.aside,
            working_dir=str(self._local),
            log=str(logs.of_node(self._node) / f"{process}.txt"),
            errors=str(logs.errors_of_node(self._node) / f"{process}.txt"),
            logging_level=self._spec.logging_level,
            nice=self._spec.nice,
            profiling_module=self._spec.profiling_module,
            exit_s=self._exit_s,
            masked=self.mask.forms,
            job=self._view,
            command=spec.shell_command(outputs.paths),
            in_flight=MOST_IN_FLIGHT if spec.mini_batches_in_flight == "auto" else spec.mini_batches_in_flight,
            in_flight_by=spec.in_flight,
            run_s=spec.run_invocation_timeout,
        )

    def _permits_of(self, process: str) -> Callable[[], int] | None:
        opened = self._open_permits
        return (lambda: opened(self._spec.rate_limits, self.job_id, process)) if opened is not None else None

    def _own_logs(self, config: WorkerConfig) -> tuple[Path, ...]:
        profiles = [".profile", ".profile.json"] if config.profiling_module else []
        marks = [] if config.command else [".stdout.marks", ".stderr.marks", ".logger.marks"]
        return (Path(config.log), Path(config.errors), *map(Path(config.log).with_suffix, profiles + marks))

    def clean(self, process: str) -> None:
        """Remove a dead worker's working folder, and free its GPU."""
        self.drop(self._local / process)
        self._gpus.give_back(f"{self.job_id}/{process}")

    def drop(self, folder: Path) -> None:
        """Remove a folder of a dead worker's."""
        throw_away(folder, self._local if self._user.is_other else self._local.parent, self._user)

    @property
    def has_begun(self) -> bool:
        """Return whether there was a plan for a worker."""
        return self._next_process > 0

    def close(self) -> None:
        """Remove the job's folder on this node, and the place for files of scripts if none has written any."""
        with suppress(OSError):
            Logs(self._folder.logs).script_files(self._node).rmdir()
        throw_away(self._local, self._local.parent, self._user)


def _output_settings(folder: JobFolder, spec: JobSpec) -> dict[str, Any]:
    return {
        "format": row_format(folder.output_file(spec)),
        "header": spec.append_row_dataframe_header,
        "separator": spec.append_row_separator,
        "safe": spec.append_row_safe_output,
        "columns": spec.append_row_columns,
        "objects": spec.append_row_objects,
    }


def take_over_memory(earlier: Path, folder: Path) -> None:
    """Link the files of an earlier job's memory into that of this job.

    Links need no room, and stay when the earlier job is deleted. A file that can't be linked is left out: what was
    remembered in it is asked for again.
    """
    with suppress(OSError):
        (folder / _EARLIER).mkdir(parents=True, exist_ok=True)
    for file in sorted(earlier.glob("*/*.jsonl")):
        name = (
            file.name if file.parent.name == _EARLIER else f"{earlier.parents[2].name}.{file.parent.name}.{file.name}"
        )
        with suppress(OSError):
            os.link(file, folder / _EARLIER / name, follow_symlinks=False)
