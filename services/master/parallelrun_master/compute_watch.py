"""Whether a job's compute has the nodes that it waits for, and why not: for people, who see it as progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_core.computes.catalog import Catalog
from parallelrun_core.progress import Progress
from parallelrun_core.service.pacing import Every
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.provisioning import ComputeStatus, Provisioning

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

_ASK_EVERY_S: Final = 1.0
_SILENT_S: Final = 30.0
"""After which what a provisioner has said doesn't count any more."""


class ComputeWatch:
    """What a job's leader shows of its compute. A job without one costs nothing.

    Args:
        say: tells a change of phase.
        clock: Redis', by which statuses are dated.
    """

    def __init__(
        self, root: Path, redis: Redis, spec: JobSpec, say: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._catalog = Catalog(root)
        self._provisioning = Provisioning(redis)
        self._spec = spec
        self._say = say
        self._clock = clock
        self._due = Every(_ASK_EVERY_S)
        self._said = ""

    def refresh(self, progress: Progress, nodes: int, now: float) -> None:
        """Show how many nodes there are. Raises redis-py's errors.

        Args:
            nodes: those of the compute that may work for the job and are alive.
        """
        if not self._spec.compute or not self._due.is_due(now):
            return
        wanted, why = self._spec.instance_count or 0, ""
        if not wanted or nodes < wanted:
            status = self._provisioning.status(self._spec.compute)
            wanted = wanted or (status.wanted if status is not None else 0)
            why = self._why(status) if nodes < max(1, wanted) else ""
        progress.nodes, progress.nodes_wanted, progress.nodes_why = nodes, max(wanted, nodes), why
        if nodes < wanted:
            text = f"Provisioning nodes of compute {self._spec.compute!r}{': ' if why else ''}{why}."
        else:
            text = f"The nodes of compute {self._spec.compute!r} are there."
        if text != self._said:
            self._said = text
            self._say(text)

    def _why(self, status: ComputeStatus | None) -> str:
        if status is None and not self._catalog.has(self._spec.compute):
            return "it was deleted: define it again, or cancel the job"
        return why_missing(status, self._clock())


def why_missing(status: ComputeStatus | None, now: float) -> str:
    """What a compute waits for, in words; empty: its nodes are on their way.

    Args:
        now: by the clock of the status.
    """
    if status is None:
        return "no provisioner has said anything of it"
    if now - status.at > _SILENT_S:
        return f"the provisioner has been silent for {now - status.at:.0f} s"
    if status.why:
        later = f"; it is tried again in {status.next_attempt - now:.0f} s" if status.next_attempt > now else ""
        return f"{status.why}{later}"
    return next((each.words for each in status.nodes if each.stage in ("pending", "starting") and each.words), "")
