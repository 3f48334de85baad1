"""The datastores of a cluster, as clients define and delete them."""

from __future__ import annotations

import json
from pathlib import Path

from parallelrun_api.readable import readable
from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.definition import Datastore
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import Conflict, CorruptLog, InvalidInput, NewerSchema, NotFound
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.storage.location import in_datastore
from parallelrun_core.storage.objects.allowed import is_below
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.store.registry import Registry


class DatastoreService:
    """Defines, shows and deletes datastores. Safe to share between threads."""

    def __init__(self, root: Path, places: Places, registry: Registry) -> None:
        self._root = root
        self._catalog = datastore_catalog(root)
        self._bound = BoundSecrets(root)
        self._rule = PathRule(root, places)
        self._registry = registry

    def all(self) -> list[Datastore]:
        """All of them, by name; one whose file is damaged is left out, and logged."""
        return readable("datastore", self._catalog.names(), self._catalog.get)

    def get(self, name: str) -> Datastore:
        """Return one of them. Raises NotFound."""
        return self._catalog.get(name)

    def put(self, name: str, document: object) -> tuple[Datastore, bool]:
        """Define a datastore, or define it anew, durably; returns it, and whether it is new.

        Raises:
            InvalidInput: something is wrong with it, what it stands for is outside of the places that jobs may use, or
                its secret is for another bucket.
        """
        datastore = read_definition(document, name=name)
        if not is_below(datastore.root, self._rule.urls):
            field = "/endpoint" if datastore.root.startswith("http") else ""
            hint = f"allowed_roots: {':'.join(self._rule.urls) or 'no URLs'} (PARALLELRUN_ALLOWED_ROOTS of the API)"
            message = f"it stands for {datastore.root!r}, which is outside of the places that jobs may use"
            raise InvalidInput.at(field, message, hint)
        self._bound.check(datastore)
        return datastore, self._catalog.define(datastore)

    def remove(self, name: str) -> None:
        """Forget a datastore; what is in the store stays.

        Raises:
            NotFound: there is none of this name.
            Conflict: a job that has not ended uses it, or one that still has to clear up in the store.
            NewerSchema, OSError: nobody can tell whether a job uses it.
            RedisError: Redis is away, which knows what has not ended.
        """
        self._catalog.get(name)
        path = in_datastore(name, "")
        for job_id in self._registry.active_jobs():
            try:
                spec = JobFolder(self._root, job_id).record().spec
            except (CorruptLog, NewerSchema, NotFound):
                continue
            if path in json.dumps(spec):
                raise Conflict(f"Job {job_id} uses datastore {name!r}: wait for it, or cancel it.")
        self._catalog.remove(name)
