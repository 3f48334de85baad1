"""Claims of outputs: the files that a job is going to publish and that other jobs may name, too, one name each."""

from __future__ import annotations

from collections.abc import Iterator

from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec.pipeline_steps import LeafStep, leaf_steps
from parallelrun_core.store.registry import BETWEEN_OUTPUTS


def claim_of(folder: JobFolder, record: JobRecord) -> str | None:
    """Return what the registry is told that an accepted job will publish; None if nothing that others may name.

    Raises:
        CorruptLog: its spec can't be read.
    """
    if not record.is_pipeline:
        return folder.named_output(record.job_spec())
    names = [name for _, name in named_outputs(folder, leaf_steps(record.pipeline_spec()))]
    return BETWEEN_OUTPUTS.decode().join(names) or None


def named_outputs(folder: JobFolder, steps: list[LeafStep]) -> Iterator[tuple[LeafStep, str]]:
    """The files with rows that steps are going to publish at places which others may name, too."""
    for step in steps:
        # Where a step's own folder will be makes no difference: nobody may name what is in it.
        if (name := folder.named_output(step.spec)) is not None:
            yield step, name
