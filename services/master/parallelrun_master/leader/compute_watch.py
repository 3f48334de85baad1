"""The watch over a job's compute: whether it has the nodes that the job waits for, and why not; shown as progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.kinds import MANUAL
from parallelrun_core.errors import CorruptLog
from parallelrun_core.names.computes import built_image_of
from parallelrun_core.service.pacing import Every
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.provisioning import ImageBuild, Provisioning, ProvisioningStatus
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.progress import Progress

if TYPE_CHECKING:
    from parallelrun_core.store.connection import Redis

_ASK_EVERY_S: Final = 1.0
_SILENT_S: Final = 30.0
"""After which what a provisioner has said doesn't count any more."""


class ComputeWatch:
    """The state of a job's compute, as its leader shows it. A job without one costs nothing.

    Args:
        say: tells a change of phase.
        clock: Redis', by which statuses are dated.
    """

    def __init__(
        self, root: Path, redis: Redis, spec: JobSpec, say: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._catalog = ComputeCatalog(root)
        self._provisioning = Provisioning(redis)
        self._spec = spec
        self._say = say
        self._clock = clock
        self._due = Every(_ASK_EVERY_S)
        self._message = ""
        self._since: float | None = None
        """From when on, by that clock, what a provisioner says was said while this job was there."""
        self.is_awaited = False
        """Whether its provisioner is at work, so that a job without nodes waits for others, and doesn't stall."""
        self.failure: JobFailure | None = None
        """Why there will never be a node for the job."""

    def refresh(self, progress: Progress, nodes: int, now: float) -> None:
        """Show how many nodes there are. Raises redis-py's errors.

        Args:
            nodes: those of the compute that may work for the job and are alive.
        """
        if not self._spec.compute or not self._due.is_due(now):
            return
        wanted_nodes, why, self.is_awaited = self._asked_for(), "", False
        if not wanted_nodes or nodes < wanted_nodes:
            status = self._provisioning.status(self._spec.compute)
            wanted_nodes = wanted_nodes or (status.wanted if status is not None else 0)
            clock = self._clock()
            self._since = clock if self._since is None else self._since
            if status is not None and status.at > self._since and not nodes:
                self.failure = why_never(status, self._spec.environment.node_image, since=self._since)
            self.is_awaited = is_served(status, clock)
            why = self._why(status, clock) if nodes < max(1, wanted_nodes) else ""
        progress.nodes, progress.nodes_wanted, progress.nodes_why = nodes, max(wanted_nodes, nodes), why
        if nodes < wanted_nodes:
            text = f"Provisioning nodes of compute {self._spec.compute!r}{': ' if why else ''}{why}."
        else:
            text = f"The nodes of compute {self._spec.compute!r} are there."
        if text != self._message:
            self._message = text
            self._say(text)

    def _asked_for(self) -> int:
        """The nodes that the job asks for, as far as its compute may have them; 0: as many as it can keep busy."""
        node_count, name = self._spec.instance_count or 0, self._spec.compute
        with suppress(CorruptLog):
            if node_count and name in self._catalog and (compute := self._catalog.get(name)).kind != MANUAL:
                return min(node_count, compute.max_instances)
        return node_count

    def _why(self, status: ProvisioningStatus | None, now: float) -> str:
        name = self._spec.compute
        if status is None and name not in self._catalog:
            return "it was deleted: define it again, or cancel the job"
        with suppress(CorruptLog):
            if status is None and self._catalog.get(name).kind == MANUAL:
                return f"people start its nodes: `parallelrun-agent --compute {name}`"
        return why_missing(status, now, self._spec.environment.node_image)


def is_served(status: ProvisioningStatus | None, now: float) -> bool:
    """Return whether nodes of a compute are pending, or all that it may have are there, or it tries again to get some.

    Args:
        now: by the clock of the status.
    """
    return status is not None and now - status.at <= _SILENT_S and status.wanted > 0


def why_never(status: ProvisioningStatus, image: str, *, since: float) -> JobFailure | None:
    """The failure of a job whose image can't be built; None: it may be had.

    Args:
        image: of its nodes.
        since: of a failure before this, by the clock of the status, the image is built anew for the job.
    """
    build = status.builds.get(image)
    if build is None or not build.failure or (build.failed_at or status.at) <= since:
        return None
    return JobFailure(
        code="IMAGE_FAILED",
        summary="The image that the job brings a Dockerfile for can't be built.",
        first_cause=build.failure,
        log="sys/image.txt",
        hint="correct it and submit the job again; if nothing in it is wrong, `parallelrun job resume` tries it again",
    )


def why_missing(status: ProvisioningStatus | None, now: float, image: str) -> str:
    """Return what a compute waits for, in words; empty: its nodes are on their way.

    Args:
        now: by the clock of the status.
        image: of the nodes, if the job has named it.
    """
    if status is None:
        return "no provisioner has said anything of it"
    if now - status.at > _SILENT_S:
        return f"the provisioner has been silent for {now - status.at:.0f} s"
    if status.trouble:
        return status.trouble
    build = status.builds.get(image)
    if build is None and status.more_builds and built_image_of(image):
        build = ImageBuild(said="waiting for the builds of other images")
    if build is not None:
        return build.failure or build.said
    if (pause := status.pauses.get(image)) is not None:
        later = f"; it is tried again in {pause.next_attempt - now:.0f} s" if pause.next_attempt > now else ""
        return f"{pause.why}{later}"
    return next((each.words for each in status.nodes if each.stage in ("pending", "starting") and each.words), "")
