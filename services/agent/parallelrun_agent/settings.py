"""Settings of an agent."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from parallelrun_core.ids import checked_node
from parallelrun_core.service.settings import ServiceSettings


def _default_node() -> str:
    return socket.gethostname().split(".")[0] or "node"


class AgentSettings(ServiceSettings):
    """Settings of one agent."""

    redis_user: ClassVar[str] = "agent"

    node: str = Field(default_factory=_default_node)
    """Name of this node; unique in the cluster."""
    slots: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1, le=4096)
    """Workers that run at the same time; as many as there are CPUs when not set."""
    gpus: int | None = Field(default=None, ge=0, le=1024)
    """GPUs for its workers, one for each; detected when not set."""
    work_dir: Path | None = None
    """Local folder for the workers' working folders; emptied at start."""
    cache_dir: Path | None = None
    """Local folder for the environments of jobs, which are kept; the user's cache folder when not set."""
    environments_kept: int = Field(default=20, ge=1)
    """How many environments of jobs are kept there; the least recently used are removed first, never one in use."""
    sync: bool = True
    """Sync rows and journal to disk before a commit. Off: a power cut may lose committed rows."""
    grace_seconds: float = Field(default=20.0, ge=0, le=86_400)
    """How long running mini-batches may go on after SIGTERM."""
    shutdown_seconds: float = Field(default=30.0, ge=0, le=40)
    """How long a worker's shutdown() may take. A master waits 45 s for its agents."""
    max_log_bytes: int = Field(default=64 << 20, ge=1 << 15)
    """The most bytes of a worker's stdout and of its stderr; more is dropped and counted."""
    poll_seconds: float = Field(default=0.05, gt=0, le=10)
    """Seconds between two polls for work, on a node with free slots."""

    @field_validator("node")
    @classmethod
    def _safe_node(cls, value: str) -> str:
        return checked_node(value)

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
