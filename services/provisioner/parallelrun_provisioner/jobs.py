"""The demand of the jobs that have not ended, by the compute that they run on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from parallelrun_core.computes.launch import Shape
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE, SkippedJobs
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.registry import Registry
from parallelrun_provisioner.policy.demand import Need

ShapeOf = Callable[[str, JobSpec], Shape]


class _ComputeRequest(NamedTuple):
    """The part of a job's record that never changes."""

    compute: str
    spec: JobSpec


class JobRecords:
    """Reads each job's record once."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self._root = root
        self._registry = registry
        self._skipped = SkippedJobs(root)
        self._requests: dict[str, _ComputeRequest | None] = {}
        """None: it needs no nodes of a compute."""

    def needs(self, shape_of: ShapeOf) -> dict[str, list[Need]]:
        """The needs of all jobs, by compute. Raises redis-py's errors.

        Args:
            shape_of: the shape of the nodes of a compute that a job needs.
        """
        active = self._registry.active_jobs()
        self._requests = {job_id: self._requests[job_id] for job_id in active if job_id in self._requests}
        self._skipped.keep_only(active)
        for job_id in active:
            if job_id not in self._requests:
                self._read(job_id)
        mine = [job_id for job_id in active if self._requests.get(job_id)]
        needs: dict[str, list[Need]] = {}
        for job_id, status in self._registry.statuses(mine).items():
            request = self._requests[job_id]
            if request is None or status.state.is_terminal:
                continue
            need = Need(
                state=status.state,
                progress=status.progress,
                instance_count=request.spec.instance_count,
                workers_per_node=request.spec.max_concurrency_per_instance,
                shape=shape_of(request.compute, request.spec),
                job=job_id,
            )
            needs.setdefault(request.compute, []).append(need)
        return needs

    def _read(self, job_id: str) -> None:
        try:
            record = JobFolder(self._root, job_id).record()
            compute = "" if record.is_pipeline else str(record.spec.get("compute") or "")
            self._requests[job_id] = _ComputeRequest(compute, record.job_spec()) if compute else None
        except UNREADABLE as error:
            self._skipped.report(job_id, error)
