"""The notes on a document that are true on this server: some depend on the computes that it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from parallelrun_core.azure.findings import Note
from parallelrun_core.computes import images
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.images import has_image
from parallelrun_core.computes.selection import computes_in
from parallelrun_core.figures import counted
from parallelrun_core.names import computes as names
from parallelrun_core.store.nodes import NodeInfo, NodeRegistry, fewer_workers


def true_notes(
    notes: Iterable[Note], submitted: Mapping[str, Any], recorded: Mapping[str, Any], *, has_computes: bool
) -> list[str]:
    """The notes that are true of a job on this server, with those that its reader could not make.

    Args:
        notes: of the reader.
        submitted: the spec as it came.
        recorded: the same spec as it is recorded, with the compute that was selected.
        has_computes: the server has any.
    """
    untrue = {names.NOTE} if has_computes else set()
    untrue |= {images.NOTE, images.BUILD_NOTE} if has_image(recorded) else set()
    true = [note for note in notes if note.message not in untrue]
    if not has_computes and computes_in(submitted) and all(note.message != names.NOTE for note in true):
        true.append(Note("/compute", names.NOTE))
    return [str(note) for note in true]


def notes_on_size(recorded: Mapping[str, Any], computes: ComputeCatalog, nodes: NodeRegistry) -> list[str]:
    """The notes on a job, or on steps, that ask for more workers or nodes than there are. Raises redis-py's errors.

    Args:
        recorded: the spec as it is recorded, with the compute that was selected.
    """
    jobs = list(_jobs_in(recorded))
    if not any(job.get("max_concurrency_per_instance") or job.get("instance_count") for _, job in jobs):
        return []
    alive = [info for info, is_alive in nodes.all() if is_alive]
    return [f"{where}: {note}" for path, job in jobs for where, note in _on_size(path, job, computes, alive)]


def _jobs_in(spec: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    steps = spec.get("steps")
    if not isinstance(steps, Mapping):
        yield path, spec
        return
    for name, step in steps.items():
        if isinstance(step.get("job"), Mapping):
            yield from _jobs_in(step["job"], f"{path}/steps/{name}/job")


def _on_size(
    path: str, job: Mapping[str, Any], computes: ComputeCatalog, alive: list[NodeInfo]
) -> Iterator[tuple[str, str]]:
    requested, count, name = (
        job.get("max_concurrency_per_instance"),
        job.get("instance_count"),
        job.get("compute") or "",
    )
    mine = [info for info in alive if info.compute == name]
    if requested and (note := fewer_workers(requested, mine)):
        yield f"{path}/max_concurrency_per_instance", note
    if not count:
        return
    pointer = f"{path}/instance_count"
    if name in computes.names() and count > (most := computes.get(name).max_instances):
        yield pointer, f"compute {name!r} has {counted(most, 'node')} at most, so the job gets no more"
    elif not name and mine and count > len(mine):
        yield pointer, f"nodes that are there now: {len(mine):,}; the job uses more when they come"
