"""The datastores of this user's runs on this machine: defined once, and known to the cluster of each run."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from parallelrun.models import Datastore
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.document import datastore_catalog
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_sources import SETTING, inherited_setting
from parallelrun_core.service.state_folder import state_folder


class OwnDatastores:
    """The datastores of this user: as `parallelrun.resources.datastores.Datastores`, without a server.

    Raises:
        RuntimeError: the user has no home folder.
    """

    def __init__(self) -> None:
        self._catalog = datastore_catalog(state_folder())
        self._bound = BoundSecrets(state_folder())

    def create(self, definition: Mapping[str, Any] | str | Path) -> Datastore:
        """Define a datastore, or define it anew. Raises InvalidInput."""
        # Here, so that a run starts its services before that.
        from parallelrun.resources.datastores import read_document

        checked = read_document(definition)
        self._bound.check(checked)
        self._catalog.define(checked)
        return self.get(checked.name)

    def list(self) -> list[Datastore]:
        """All of them, by name."""
        return [self.get(name) for name in self._catalog.names()]

    def get(self, name: str) -> Datastore:
        """Return one of them. Raises NotFound."""
        return Datastore.of(self._catalog.get(name))

    def delete(self, name: str) -> None:
        """Forget a datastore; what is in the store stays. Raises NotFound."""
        self._catalog.remove(name)


def use() -> None:
    """Let this process know them, with their secrets: it looks at outputs in stores before a run starts."""
    with suppress(RuntimeError):
        datastore_registry.configure(state_folder(), _secrets(inherited_setting(os.environ).get(SETTING, "")))


@cache
def _secrets(place: str) -> ProcessSecrets:
    """Return the secrets of this process, which is its user's: runs come and go in it."""
    secrets = ProcessSecrets(place)
    atexit.register(secrets.close)
    return secrets


def give_to(root: Path) -> None:
    """Let the cluster with this root folder know this user's datastores, as they are now."""
    try:
        own_catalog, theirs = datastore_catalog(state_folder()), datastore_catalog(root)
    except RuntimeError:
        return  # no home folder, and so none defined
    for name in own_catalog.names():
        theirs.define(own_catalog.get(name))
