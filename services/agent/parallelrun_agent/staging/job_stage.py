"""All that one job stages on one node: the files of its mini-batches, and the inputs that each worker needs whole."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from parallelrun_agent.node_context import NodeContext
from parallelrun_agent.policy.job_machine import JobMachine
from parallelrun_agent.staging.side_inputs import SideInputs
from parallelrun_agent.staging.staging import Staging
from parallelrun_agent.staging.tree import JobTree, side_inputs
from parallelrun_agent.users.worker_user import WorkerUser
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.mltable.input_plan import load_plans
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.outcome import Failure


class JobStage:
    """Nothing is created for a job that stages nothing.

    Raises:
        OSError: the node's cache can't be used.
        CorruptLog, InvalidInput: the plans of the job's inputs can't be read by this release.
    """

    def __init__(self, folder: JobFolder, spec: JobSpec, user: WorkerUser, node: NodeContext) -> None:
        self._folder = folder
        self._spec = spec
        self._node = node
        # A node joins a job that has mini-batches, so its plans are frozen.
        self._plans = load_plans(folder.path) or []
        self.has_data = any(plan.is_staged for plan in self._plans)
        """Whether its mini-batches have files that are to be brought here."""
        urls = side_inputs(spec)
        self._side_inputs: SideInputs | None = None
        if not (self.has_data or urls):
            return
        self._tree = JobTree(node.stage.make_tree(folder.job_id, user), spec)
        if urls:
            self._side_inputs = SideInputs(
                urls, self._tree, node.stage.cache, timeout_s=spec.task_overhead_timeout, changed=node.loop.wake
            )

    @property
    def is_ready(self) -> bool:
        return self._side_inputs is None or self._side_inputs.is_ready

    def take_failure(self) -> Failure | None:
        """Why none may: see `SideInputs`."""
        return self._side_inputs.take_failure() if self._side_inputs is not None else None

    def is_due(self, now: float) -> bool:
        """Return whether it is time to report that what each worker needs is still on its way."""
        return self._side_inputs is not None and self._side_inputs.is_due(now)

    def reported(self, now: float) -> None:
        """Record that the failure was reported."""
        if self._side_inputs is not None:
            self._side_inputs.reported(now)

    def paths(self) -> Mapping[str, str]:
        """Return what the workers of the present session find as the path of each input that is
        brought here, by name.
        """
        paths = self._tree.paths() if self.has_data else {}
        return paths | (self._side_inputs.paths if self._side_inputs is not None else {})

    def open(self, events: AbstractContextManager[JobMachine]) -> Staging:
        """The staging of a new session."""
        return Staging(
            self._node.stage.cache, self._folder.path, self._tree, self._plans,
            timeout_s=self._spec.task_overhead_timeout, beside=self._beside, loop=self._node.loop, events=events,
        )  # fmt: skip

    def _beside(self) -> int:
        return self._side_inputs.admitted_bytes if self._side_inputs is not None else 0

    def close(self) -> None:
        """Free what is there, once the session is closed."""
        if self._side_inputs is not None:
            self._side_inputs.close()
        if self.has_data or self._side_inputs is not None:
            self._tree.remove()
