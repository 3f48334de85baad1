"""The plan of a job before it runs: how much it is, and how many nodes could do something for it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun.errors import ClusterFailed, InvalidInput

if TYPE_CHECKING:
    from parallelrun_core.adviser.trial import Trial
    from parallelrun_core.spec import JobSpec

_WAIT_S: Final = 180.0
_AHEAD: Final = 3
"""Mini-batches that may be on a node's disk for each worker: the one that runs, and the next ones."""
_USEFUL: Final = 0.9
"""Nodes are of use for as long as each of them has this part of the time to do something."""


class Extent(msgspec.Struct, kw_only=True, frozen=True):
    """The amount of a job, as a leader would cut its inputs."""

    mini_batches: int = 0
    files: int = 0
    rows: int = 0
    """Rows of tables in forms that know how many they have."""
    bytes: int = 0
    """Bytes of all files, estimated from a sample of them, and of tables."""
    largest_bytes: int = 0
    """Bytes of the largest mini-batch, about."""
    is_complete: bool = False
    """All inputs were listed; otherwise there are more."""
    is_staged: bool = False
    """Mini-batches are copied to the disks of the nodes before they run."""
    error: str = ""
    """The reason why it isn't known; empty: it is."""


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
        return _AHEAD * self.workers * self.extent.largest_bytes if self.extent.is_staged else 0

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
    command = [sys.executable, "-P", "-m", "parallelrun_master.planning.extent"]
    request = json.dumps(spec.model_dump(mode="json")).encode()
    try:
        done = subprocess.run(command, input=request, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise ClusterFailed(f"the inputs were not listed in {timeout_s:g} s") from error
    if done.returncode:
        raise ClusterFailed(f"the inputs can't be listed: {done.stderr.decode(errors='replace').strip()[-2000:]}")
    extent = msgspec.json.decode(done.stdout, type=Extent)
    if extent.error:
        raise InvalidInput.at("inputs", extent.error)
    return extent
