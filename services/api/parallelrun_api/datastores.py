"""The datastores of a cluster, as clients define and delete them."""

from __future__ import annotations

import json
from pathlib import Path

from parallelrun_api.definitions import DefinitionService
from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.definition import Datastore
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import Conflict, CorruptLog, InvalidInput, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.storage.location import in_datastore
from parallelrun_core.storage.objects.allowed import is_below
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.store.registry import Registry


class DatastoreService(DefinitionService[Datastore]):
    """Datastores: what one stands for is within the places that jobs may use, and its secret is for no other bucket."""

    def __init__(self, root: Path, places: Places, registry: Registry) -> None:
        super().__init__("datastore", datastore_catalog(root), read_definition)
        self._root = root
        self._bound = BoundSecrets(root)
        self._rule = PathRule(root, places)
        self._registry = registry

    def _read(self, name: str, document: object) -> Datastore:
        datastore = super()._read(name, document)
        if not is_below(datastore.root, self._rule.urls):
            field = "/endpoint" if datastore.root.startswith("http") else ""
            hint = f"allowed_roots: {':'.join(self._rule.urls) or 'no URLs'} (PARALLELRUN_ALLOWED_ROOTS of the API)"
            message = f"it stands for {datastore.root!r}, which is outside of the places that jobs may use"
            raise InvalidInput.at(field, message, hint)
        self._bound.check(datastore)
        return datastore

    def _check_unused(self, name: str) -> None:
        """Raise Conflict if a job uses it that has not ended, or that still has to clear up in the store."""
        path = in_datastore(name, "")
        for job_id in self._registry.active_jobs():
            try:
                spec = JobFolder(self._root, job_id).record().spec
            except (CorruptLog, NewerSchema, NotFound):
                continue
            if path in json.dumps(spec):
                raise Conflict(f"Job {job_id} uses datastore {name!r}: wait for it, or cancel it.")
