"""The computes of a cluster, as clients define and delete them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parallelrun_api.definitions import DefinitionService
from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.document import read_definition
from parallelrun_core.computes.kinds import MANUAL
from parallelrun_core.computes.selection import computes_in
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.unreadable import UNREADABLE
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.store.provisioning import Provisioning, ProvisioningStatus
from parallelrun_core.store.registry import Registry


class ComputeService(DefinitionService[Compute]):
    """Computes: a provisioner starts the nodes of one, and one of them is the default. Nodes of a deleted one go."""

    def __init__(self, root: Path, catalog: ComputeCatalog, registry: Registry, provisioning: Provisioning) -> None:
        super().__init__("compute", catalog, read_definition)
        self._root = root
        self._schedules = ScheduleStore(root)
        self._registry = registry
        self._provisioning = provisioning

    def status(self, name: str) -> ProvisioningStatus | None:
        """Return how one stands; None: no provisioner has said so. Raises RedisError."""
        return self._provisioning.status(name)

    def statuses(self) -> dict[str, ProvisioningStatus]:
        """Return how all of them stand of which a provisioner has said so. Raises RedisError."""
        return self._provisioning.statuses()

    def kinds(self) -> list[str]:
        """The kinds of nodes that the provisioner starts, the first one for documents that name none; none if there is
        no provisioner."""
        return list(self._provisioning.kinds())

    def _read(self, name: str, document: object) -> Compute:
        served = self._provisioning.kinds()
        compute = read_definition(document, name=name, main_kind=served[0] if served else "")
        if served and compute.kind not in (*served, MANUAL):
            hint = f"one of {', '.join([*served, MANUAL])}; whoever runs the provisioner says so with its --kinds"
            raise InvalidInput.at("/type", f"no nodes of type {compute.kind!r} can be had here", hint)
        others = [each.name for each in self.all() if each.is_default and each.name != name]
        if compute.is_default and others:
            hint = f"define {others[0]!r} anew without `is_default` first"
            raise InvalidInput.at("/is_default", f"the compute {others[0]!r} is the default already", hint)
        return compute

    def _check_unused(self, name: str) -> None:
        """Raise Conflict if a job that has not ended runs there, or a schedule makes jobs there."""
        self._check_schedules(name)
        for job_id, spec in _active_specs(self._root, self._registry):
            if name in computes_in(spec):
                raise Conflict(f"Job {job_id} runs on compute {name!r}: wait for it, or cancel it.")

    def _check_schedules(self, name: str) -> None:
        for each in self._schedules.names():
            try:
                revision = self._schedules.find(each)
            except UNREADABLE:
                continue
            if revision is not None and name in computes_in(revision.job.spec):
                raise Conflict(
                    f"The schedule {each!r} makes jobs on compute {name!r}: delete it, or define it with another one."
                )


def _active_specs(root: Path, registry: Registry) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each job that has not ended, and its spec; those whose folders nobody can read are left out. Raises
    RedisError.
    """
    for job_id in registry.active_jobs():
        folder = JobFolder(root, job_id)
        try:
            # A leader records how its job has ended before it tells Redis.
            if not folder.has_ended:
                yield job_id, folder.record().spec
        except UNREADABLE:
            continue
