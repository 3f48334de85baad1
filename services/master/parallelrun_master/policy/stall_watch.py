"""When a job that makes no progress fails."""

from __future__ import annotations

from parallelrun_core.failure import JobFailure
from parallelrun_core.spec import JobSpec

_SPARE_S = 600.0


class StallWatch:
    """Measures how long a job has made no progress."""

    def __init__(self, spec: JobSpec, now: float) -> None:
        self._first_s = spec.first_task_creation_timeout
        longest_s = 3 * spec.run_invocation_timeout * spec.run_max_try + max(_SPARE_S, spec.task_overhead_timeout)
        self._update_s = spec.progress_update_timeout or longest_s
        self._spec = spec
        self._last = now
        self._moved = False

    def moved(self, now: float) -> None:
        """Something was scheduled, tried or decided."""
        self._last = now

    def first_mini_batch(self) -> None:
        self._moved = True

    def stalled(self, now: float, *, nodes: int, running: int, why_none: str = "") -> JobFailure | None:
        """The failure of a job that has made no progress for too long, with what it seems to wait for.

        Args:
            why_none: what is known of why its compute has no nodes.
        """
        limit = self._update_s if self._moved else self._first_s
        if now - self._last <= limit:
            return None
        wanted, compute = self._spec.instance_count, self._spec.compute
        if not nodes:
            waits = f"no node of compute {compute!r} is alive" if compute else "no node is alive"
            waits += f" ({why_none})" if why_none else ""
        elif wanted and nodes < wanted:
            waits = f"have {nodes} of {wanted} nodes"
        else:
            waits = f"{nodes} nodes are alive, {running} mini-batches are with a worker"
        name = "progress_update_timeout" if self._moved else "first_task_creation_timeout"
        hint = f"`parallelrun compute show {compute}` says why there are none" if compute and not nodes else ""
        if nodes and not running:
            hint = "no worker has asked for work: if init() hangs, the workers' stderr in logs/user/stderr shows where"
        return JobFailure(code="NO_PROGRESS", summary=f"No progress for {limit:g} s ({name}): {waits}.", hint=hint)
