"""The endpoints of a cluster, on the volume that all services share.

endpoints/<name>/
    endpoint.json
    deployments/<name>.json
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Definitions, Documents, no_such
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentMissing
from parallelrun_core.endpoints.records import Deployment, Endpoint
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound

_ENDPOINT: Final = "endpoint"
_DEPLOYMENTS: Final = "deployments"


class EndpointStore:
    """All endpoints and deployments. Safe to share between threads and processes.

    Methods raise CorruptLog or NewerSchema for what can't be read.

    Args:
        shows: whether errors may name what an owner has; None: whoever gets them may see all.
    """

    def __init__(self, root: Path, *, shows: Callable[[str], bool] | None = None) -> None:
        self._store: Final = FileStore(root, "endpoints")
        self._shows: Final = shows

    def names(self) -> list[str]:
        """The names of all endpoints, in order."""
        return [name for name in self._store.children() if _ENDPOINT in self._documents(name)]

    def get(self, name: str) -> Endpoint:
        """Returns an endpoint. Raises NotFound."""
        if name in (names := self.names()):
            with suppress(NotFound):
                return self._documents(name).get(_ENDPOINT)
        raise no_such("endpoint", name, names if self._shows is None else list(filter(self._is_shown, names)))

    def _is_shown(self, name: str) -> bool:
        with suppress(NotFound, NewerSchema, CorruptLog):
            return self._shows is None or self._shows(self._documents(name).get(_ENDPOINT).owner)
        return False

    def put(self, endpoint: Endpoint) -> None:
        """Define an endpoint, durably."""
        self._documents(endpoint.name).put(_ENDPOINT, endpoint)

    def remove(self, name: str) -> None:
        """Remove an endpoint with its deployments. Their jobs stay. Raises NotFound."""
        self.get(name)
        with suppress(DocumentMissing):
            self._store.remove_child(name)

    def deployments(self, endpoint_name: str) -> list[str]:
        """The names of an endpoint's deployments, in order."""
        return self._deployments(endpoint_name).names()

    def deployment(self, endpoint_name: str, name: str) -> Deployment:
        """Returns a deployment. Raises NotFound, also if there is no such endpoint."""
        self.get(endpoint_name)
        return self._deployments(endpoint_name).get(name)

    def put_deployment(self, deployment: Deployment) -> None:
        """Define a deployment, durably. Raises NotFound if there is no such endpoint."""
        with self._store.locked():  # or it could outlive the endpoint, and belong to the next one of its name
            self.get(deployment.endpoint)
            self._deployments(deployment.endpoint).define(deployment)

    def remove_deployment(self, endpoint_name: str, name: str) -> None:
        """Remove a deployment. Its jobs stay. Raises NotFound."""
        self.get(endpoint_name)
        self._deployments(endpoint_name).remove(name)

    def _documents(self, name: str) -> Documents[Endpoint]:
        return Documents(self._store.child(name), RecordCodec(Endpoint), noun="endpoint")

    def _deployments(self, endpoint_name: str) -> Definitions[Deployment]:
        store = self._store.child(endpoint_name).child(_DEPLOYMENTS)
        return Definitions(store, RecordCodec(Deployment), noun=f"deployment of {endpoint_name!r}")
