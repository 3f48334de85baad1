"""The plan of a job before it runs: how much it is, and how many nodes could do something for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun.errors import ClusterFailed
from parallelrun_core.checks.disk_need import AHEAD, NodeDisk, too_small
from parallelrun_core.checks.extent import Extent, extent_of
from parallelrun_core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parallelrun_core.adviser.trial import Trial
    from parallelrun_core.spec import JobSpec

_WAIT_S: Final = 180.0
_LISTING_S: Final = 60.0
"""How long inputs are listed; more would be a wait that a person takes for a hang."""
_USEFUL: Final = 0.9
"""Nodes are of use for as long as each of them has this part of the time to do something."""


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """A job before it runs, on nodes with so many workers each."""

    extent: Extent
    is_auto: bool
    """The job itself finds out how large its mini-batches are, as it runs."""
    workers: int
    """Number of workers on each node."""
    nodes: int
    """Nodes that are there now."""
    in_flight: int = 1
    """Mini-batches that each worker runs at once, at least."""
    disks_free: Mapping[str, int] = field(default_factory=dict)
    """Bytes that are free on the disk of each node."""
    has_data: bool = True
    """Its mini-batches are of inputs; False: each is a number."""

    @property
    def most_nodes(self) -> int:
        """Return the number of nodes beyond which some would have nothing to do; 0: not known.

        The last mini-batches never end together: with r rounds of them, 1 ÷ (r + 1) of the time is lost. So a node has
        some rounds to do.
        """
        if self.is_auto:
            return 0
        rounds = _USEFUL / (1 - _USEFUL) / 2
        return max(1, math.ceil(self.extent.mini_batches / (self.workers * self.in_flight) / rounds))

    @property
    def disk_bytes(self) -> int:
        """Return the bytes that a node's disk needs for inputs, about; 0: they are read where they are."""
        return AHEAD * self.workers * self.extent.largest_bytes if self.extent.is_staged else 0

    @property
    def lacks_disk(self) -> str:
        """Return which node has too little room for them, and what to do; empty: none has."""
        disks = [NodeDisk(node, self.workers, free) for node, free in self.disks_free.items()]
        return too_small(self.extent.largest_bytes if self.extent.is_staged else 0, disks)

    def as_dict(self, trial: Trial | None = None) -> dict[str, object]:
        """Return it as JSON has it.

        Args:
            trial: of the same job, for how long it takes.
        """
        counts = self.node_counts()
        return {
            **msgspec.to_builtins(self.extent),
            "mini_batch_size_is_auto": self.is_auto,
            "workers_per_node": self.workers,
            "nodes": self.nodes,
            "most_nodes": self.most_nodes or None,
            "disk_bytes_per_node": self.disk_bytes,
            "lacks_disk": self.lacks_disk or None,
            "mini_batch_s": trial and round(trial.mini_batch_s, 6),
            "seconds": trial and {str(count): round(trial.seconds(count), 3) for count in counts},
        }

    def node_counts(self) -> list[int]:
        """Return the numbers of nodes for which it is worth while to say how long the job takes."""
        most = self.most_nodes or 64
        doubled = [1 << power for power in range(most.bit_length())]
        return sorted({*(count for count in doubled if count <= most), most, self.nodes})


def measure(spec: JobSpec, timeout_s: float = _WAIT_S) -> Extent:
    """List and cut the inputs of a job on this machine, as its leader would. Nothing of the user's runs.

    Raises:
        InvalidInput: an input can't be listed or cut.
        ClusterFailed: the process that does it has failed, or took longer than `timeout_s` seconds.
    """
    try:
        return extent_of(spec, timeout_s=timeout_s, listing_s=_LISTING_S)
    except Unavailable as error:
        raise ClusterFailed(f"the inputs can't be listed: {error}") from error
