"""The context that the jobs of a node share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parallelrun_agent.environments.image_python import ImagePython
    from parallelrun_agent.loop import EventLoop
    from parallelrun_agent.permits.server import PermitServer
    from parallelrun_agent.staging.place import StagePlace
    from parallelrun_agent.workers.gpus import GpuPool
    from parallelrun_agent.workers.orphans import Orphans
    from parallelrun_agent.workers.templates import WorkerTemplates
    from parallelrun_core.service.secret_source import SecretSource


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The agent's event loop, the orphans of its workers, its GPUs, where it stages, its secrets, the Python of its
    image, and the permits and templates of its workers."""

    loop: EventLoop
    orphans: Orphans
    gpus: GpuPool
    stage: StagePlace
    secrets: SecretSource
    python: ImagePython | None = None
    """None: workers use the agent's own."""
    permits: PermitServer | None = None
    """None: no job here has limits, as in a test."""
    templates: WorkerTemplates | None = None
    """None: each worker is started by itself."""
