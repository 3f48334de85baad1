"""Settings of an agent."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field, field_validator

from parallelrun_agent.users.choice import Uids
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.hosting.settings import MOST_ALONE_S, ReadsStores
from parallelrun_core.ids import checked_node
from parallelrun_core.names.patterns import COMPUTE_NAME

SECRET_PREFIX: Final = "PARALLELRUN_SECRET_"  # noqa: S105 - a prefix of names
"""What the environment variables begin with that are secrets for jobs."""


class AgentSettings(ReadsStores):
    """Settings of one agent."""

    redis_user: ClassVar[str] = "agent"

    node: str = Field(default_factory=lambda: socket.gethostname().split(".")[0] or "node")
    """Name of this node; unique in the cluster."""
    compute: str = ""
    """The compute that this node belongs to: it works for that one's jobs only. Empty: for jobs without a compute."""
    image: str = Field(default="", max_length=4096)
    """The image that this node is of: its jobs are those that name it, and their workers use its Python. Empty: the
    workers use that of the agent."""
    ends_at: float = Field(default=0.0, ge=0)
    """Time when the node is going to be ended, in seconds since the epoch, as by the limit of a batch system: it leaves
    in time. 0: not known."""
    alone_seconds: float = Field(default=0.0, ge=0, le=MOST_ALONE_S)
    """Seconds that it goes on while Redis doesn't answer, before it ends by itself: nobody else may be left who would
    end it. 0: for ever."""
    slots: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1, le=4096)
    """Workers that run at the same time; as many as there are CPUs when not set."""
    most_slots: int = Field(default=0, ge=0, le=4096)
    """Workers that a job may have here which asks for more than `slots` (`max_concurrency_per_instance`), as one whose
    workers mostly wait for something. 0: no more than `slots`."""
    gpus: int | None = Field(default=None, ge=0, le=1024)
    """GPUs for its workers, one for each; detected when not set."""
    work_dir: Path | None = None
    """Local folder for the workers' working folders; emptied at start."""
    cache_dir: Path | None = None
    """Local folder for the environments of jobs, which are kept; the user's cache folder when not set."""
    stage_bytes: int = Field(default=0, ge=0)
    """The most bytes of objects from stores that are kept in that folder; 0: half of what is free there when the first
    job needs it."""
    pass_credentials: bool = False
    """Give the workers the variables of this agent's environment that hold credentials of object stores."""
    environments_kept: int = Field(default=20, ge=1)
    """Number of environments of jobs are kept there; the least recently used are removed first, never one in use."""
    fork_workers: bool = True
    """Fork workers from a process that has imported what their script imports first, where that is possible. Off: each
    worker is a new Python."""
    preload: str = ""
    """Modules, with spaces, that the next job's workers begin with: a process imports them, of which these may be
    forked, before that job is known. Empty: none does."""
    sync: bool = True
    """Sync rows and journal to disk before a commit. Off: a power cut may lose committed rows."""
    worker_uids: str = ""
    """User ids for workers, such as 20000-59999: each job gets one of its own, and the last eighth install packages.
    Empty: all of these are the agent's user."""
    run_as: str = ""
    """User and group that an agent becomes which root has started, such as 10001:10001. Empty: it stays what it is."""
    allow_source_packages: bool | None = None
    """True if packages for jobs may run code of theirs when they are installed, as those without a wheel do: as one of
    --worker-uids that no job is, or else as the agent; only without --worker-uids when not set."""
    grace_seconds: float = Field(default=20.0, ge=0, le=86_400)
    """Seconds that running mini-batches may go on after SIGTERM."""
    shutdown_seconds: float = Field(default=30.0, ge=0, le=40)
    """Seconds that a worker's shutdown() may take. A master waits 45 s for its agents."""
    max_log_bytes: int = Field(default=64 << 20, ge=1 << 15)
    """The most bytes of a worker's stdout and of its stderr; more is dropped and counted."""
    assets_root: Path | None = None
    """The root folder whose registered models scripts find by name; that of the cluster when not set."""
    mlflow_tracking_uri: str = ""
    """The place where jobs have a run of MLflow: the address of a tracking server, or a folder on the volume. Empty:
    nowhere."""
    mlflow_experiment: str = Field(default="parallelrun", min_length=1, max_length=255)
    """The experiment of these runs."""
    poll_seconds: float = Field(default=0.05, gt=0, le=10)
    """Seconds between two polls for work, on a node with free slots."""

    _safe_node = field_validator("node")(checked_node)

    @field_validator("compute")
    @classmethod
    def _is_a_compute(cls, value: str) -> str:
        if value and not re.fullmatch(COMPUTE_NAME, value):
            raise ValueError(f"{value!r} can't be the name of a compute")
        return value

    @field_validator("mlflow_tracking_uri")
    @classmethod
    def _for_everybody(cls, value: str) -> str:
        from parallelrun_core.tracking.mlflow_run import checked_uri

        return checked_uri(value) if value else value

    @field_validator("worker_uids")
    @classmethod
    def _range(cls, value: str) -> str:
        if value:
            Uids.parse(value)
        return value

    @field_validator("run_as")
    @classmethod
    def _ids(cls, value: str) -> str:
        if value and not re.fullmatch(r"[1-9]\d*:[1-9]\d*", value):
            raise ValueError(f"{value!r} is no user id and group id, such as 10001:10001")
        return value

    @property
    def uids(self) -> Uids | None:
        """The users that workers may be; None: the agent's."""
        return Uids.parse(self.worker_uids) if self.worker_uids else None

    def worker_user(self, owner: str) -> WorkerUser:
        """The user that the workers of a job are, by its owner: the job itself, or the pipeline that it belongs to."""
        return WorkerUser(self.uids.of_job(owner)) if self.uids else WorkerUser()

    def builder_user(self, owner: str) -> WorkerUser:
        """The user that installs packages for this owner's jobs, and that no job is."""
        return WorkerUser(self.uids.builder_of(owner)) if self.uids else WorkerUser()

    @property
    def may_build_packages(self) -> bool:
        return self.uids is None if self.allow_source_packages is None else self.allow_source_packages

    @staticmethod
    def secret_variable(name: str) -> str:
        """The value of a secret from this agent's environment; empty: it isn't there."""
        return os.environ.get(SECRET_PREFIX + name, "")

    @property
    def local_folder(self) -> Path:
        return self.work_dir or Path(tempfile.gettempdir()) / f"parallelrun-{os.getuid()}-{self.node}"

    @property
    def cache_folder(self) -> Path:
        if self.cache_dir:
            return self.cache_dir.absolute()
        home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # "~" stays where there is none
        fit = home.is_absolute() and os.access(_existing(home), os.W_OK)
        return (home if fit else Path(tempfile.gettempdir()) / f"cache-{os.getuid()}") / "parallelrun"


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)
