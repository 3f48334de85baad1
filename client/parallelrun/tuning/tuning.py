"""Tries what is advised, as long as that helps, and says which settings the job should have."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parallelrun.embedded import datastores
from parallelrun.embedded.cluster import Cluster
from parallelrun.embedded.far_places import check_inputs
from parallelrun.embedded.services import usable_cpus
from parallelrun.job_file.reading import check_paths
from parallelrun.tuning.trials import Tried, spec_of_trial, tried
from parallelrun_core.adviser.trial import MOST_NODES
from parallelrun_core.intake.reading import Reading

_SLOTS_PER_CPU: Final = 4
"""As many workers as are ever advised."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The trials, and what came out."""

    tried: list[Tried]
    best: Tried
    changes: dict[str, str]
    """Fields of the job file with the values that they should have; none: it is fine."""
    nodes: int | None
    """Number of nodes are enough; None: no number is."""
    seconds: float
    """Seconds that the job would take with all that."""


def tune(
    reading: Reading,
    *,
    target_s: float | None,
    trial_s: float,
    most_trials: int,
    on_note: Callable[[str], None],
    on_trial: Callable[[Tried], None],
) -> Tuned:
    """Try a job on this machine, with its own settings and with what is advised after each trial, until that no longer
    helps. Its script really runs; what it writes to its outputs is thrown away.

    Args:
        target_s: how long the job may take; None: as on one node.
        trial_s: how long each trial lasts from its first mini-batch on.

    Raises:
        InvalidInput: the job has no mini-batches, or a trial has done none.
        JobFailed: it fails.
        ClusterFailed, ConnectionFailed: the trials broke off.
    """
    datastores.use()
    spec, cpus = reading.job, usable_cpus()
    with reading.locating_problems():
        check_paths(spec)
        check_inputs(spec)
        spec_of_trial(spec, cpus, {})
    slots = max(_SLOTS_PER_CPU * cpus, spec.max_concurrency_per_instance or 1)
    all_tried: list[Tried] = []
    with tempfile.TemporaryDirectory(prefix="parallelrun-tune-") as home:
        cluster = Cluster(Path(home), processes=slots, jobs=1, may_forget=True, on_note=on_note)
        with cluster, cluster.client() as client:
            datastores.give_to(cluster.layout.root)
            changes: dict[str, str] | None = {}
            while changes is not None and len(all_tried) < most_trials:
                trial_of = spec_of_trial(spec, cpus, changes)
                last = tried(client, cluster.layout.root, trial_of, changes, seconds=trial_s)
                all_tried.append(last)
                on_trial(last)
                changes = _next(all_tried)
    return result(all_tried, target_s)


def _next(all_tried: list[Tried]) -> dict[str, str] | None:
    """Return what to try next; None: nothing, because the last change has not helped, or nothing is advised."""
    last = all_tried[-1]
    finding = last.trial.advised()
    if finding is None or last is not _best(all_tried):
        return None
    changes = {**last.changes, **finding.change.set}
    return None if any(changes == each.changes for each in all_tried) else changes


def _best(all_tried: list[Tried]) -> Tried:
    return min(all_tried, key=lambda each: each.trial.seconds(1))


def result(all_tried: list[Tried], target_s: float | None) -> Tuned:
    """Return what comes of some trials."""
    best = _best(all_tried)
    nodes = 1 if target_s is None else best.trial.nodes_for(target_s)
    changes = dict(best.changes)
    if target_s is not None and nodes is not None:
        changes["instance_count"] = str(nodes)
    return Tuned(
        tried=all_tried, best=best, changes=changes, nodes=nodes, seconds=best.trial.seconds(nodes or MOST_NODES)
    )
