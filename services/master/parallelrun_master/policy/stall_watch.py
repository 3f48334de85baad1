"""The stall watch: when a job that makes no progress fails."""

from __future__ import annotations

from typing import Final, NamedTuple

from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.wire.failure import JobFailure

_SPARE_S: Final = 600.0
_FIRST: Final = "first_task_creation_timeout"
_UPDATE: Final = "progress_update_timeout"
_IN_INIT: Final = "if init() hangs, the workers' stderr in logs/user/stderr shows where"


class Workforce(NamedTuple):
    """The nodes and workers that could work for a job, or do."""

    nodes: int
    """Nodes that are alive and may work for it."""
    running: int
    """Mini-batches that are with a worker."""
    workers: int = 0
    """Worker processes that it has, as far as nodes have said so."""
    why_no_nodes: str = ""
    """The reason why its compute has no nodes, as far as known."""


class StallWatch:
    """Measures how long a job has made no progress.

    Until the first mini-batch is run, `first_task_creation_timeout` counts: the time in which the job
    had something to run and could have workers. From then on, `progress_update_timeout` does, since the last progress.
    Each leader counts from zero.

    Args:
        has_run: a mini-batch was run while an earlier leader led.
    """

    def __init__(self, spec: JobSpec, now: float, *, has_run: bool = False) -> None:
        self._first_s = spec.first_task_creation_timeout
        tries_s = MiniBatchRetryPolicy.of(spec).longest_s(3 * spec.run_invocation_timeout)
        longest_s = tries_s + max(_SPARE_S, spec.task_overhead_timeout)
        self._update_s = spec.progress_update_timeout or longest_s
        self._spec = spec
        self._last = now
        self._has_run = has_run
        self._has_work = False
        self._counted_until = now
        self._without_run_s = 0.0

    def moved(self, now: float) -> None:
        """Something was scheduled, tried or decided."""
        self._last = now
        if not self._has_work:
            self._counted_until = now

    def stood_still(self, now: float) -> None:
        """Until now, the job could have no workers, for a reason that is not its own: that time doesn't count."""
        self._last = self._counted_until = now

    def published(self, now: float) -> None:
        """There is something to run."""
        self.moved(now)
        self._has_work = True

    def has_run(self) -> None:
        """A worker has, or had, a mini-batch."""
        self._has_run = True

    def stalled(self, now: float, force: Workforce) -> JobFailure | None:
        """The failure of a job that has made no progress for too long, with what it seems to wait for."""
        if force.running and not self._has_run:
            self._has_run, self._last = True, now
        self._without_run_s += now - self._counted_until
        self._counted_until = now
        if self._has_run:
            return self._failure(self._update_s, _UPDATE, force) if now - self._last > self._update_s else None
        return self._failure(self._first_s, _FIRST, force) if self._without_run_s > self._first_s else None

    def _failure(self, limit_s: float, name: str, force: Workforce) -> JobFailure:
        event = "No progress" if self._has_run else "No mini-batch has been run"
        waits, hint = self._waits(force)
        return JobFailure(code="NO_PROGRESS", summary=f"{event} for {limit_s:g} s ({name}): {waits}.", hint=hint)

    def _waits(self, force: Workforce) -> tuple[str, str]:
        """Return what the job waits for, and what to do about it."""
        nodes, running, workers, why_none = force
        wanted_nodes, compute = self._spec.instance_count, self._spec.compute
        if not nodes:
            waits = f"no node of compute {compute!r} is alive" if compute else "no node is alive"
            hint = f"`parallelrun compute show {compute}` says why there are none"
            if not compute:
                hint = "start an agent on some node; `parallelrun node list` shows those that there are"
            return waits + (f" ({why_none})" if why_none else ""), hint
        alive = "1 node is alive" if nodes == 1 else f"{nodes} nodes are alive"
        if self._has_run and wanted_nodes and nodes < wanted_nodes:
            return f"have {nodes} of {wanted_nodes} nodes", "" if running else _IN_INIT
        if running:
            return f"{alive}, {running} mini-batches are with a worker", ""
        if workers:
            hint = _IN_INIT if self._has_run else f"{_IN_INIT}; if it only takes long, raise {_FIRST}"
            return f"{alive}, and none of {workers} workers has got through init()", hint
        return f"{alive}, and no worker has been started there", "the agents' own logs say what they do"
