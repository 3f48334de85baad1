"""The endpoints of a cluster, on the volume that all services share.

endpoints/<name>/
    endpoint.json
    deployments/<name>.json

Whoever defines one replaces its file, whole; readers need no lock.
"""

from __future__ import annotations

import secrets
import shutil
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeVar

from parallelrun_core.endpoints.records import Deployment, Endpoint
from parallelrun_core.errors import NotFound
from parallelrun_core.folder.files import replace_file, sync_file, sync_folder
from parallelrun_core.folder.layout import PRIVATE_FILE, PRIVATE_FOLDER
from parallelrun_core.folder.schema import decode, encode

Record = TypeVar("Record", Endpoint, Deployment)


class EndpointStore:
    """All endpoints and deployments. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        self.folder: Final = root / "endpoints"

    def names(self) -> list[str]:
        """The endpoints, in order."""
        return _names(self.folder)

    def get(self, name: str) -> Endpoint:
        """One endpoint.

        Raises:
            NotFound: there is none of this name.
            NewerSchema, CorruptLog: it can't be read.
        """
        return _read(self._file(name), Endpoint, f"endpoint {name!r}", self.names())

    def put(self, endpoint: Endpoint) -> None:
        """Define an endpoint, durably."""
        folder = self.folder / endpoint.name
        for each in (self.folder, folder, folder / "deployments"):
            each.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _write(self._file(endpoint.name), endpoint)
        for each in (self.folder, self.folder.parent):
            sync_folder(each)

    def remove(self, name: str) -> None:
        """Forget an endpoint with its deployments. Their jobs stay. Raises NotFound."""
        self.get(name)
        beside = self.folder / f".removed-{secrets.token_hex(6)}"
        (self.folder / name).rename(beside)
        sync_folder(self.folder)
        shutil.rmtree(beside, ignore_errors=True)

    def deployments(self, endpoint: str) -> list[str]:
        """The names of an endpoint's deployments, in order."""
        return [name.removesuffix(".json") for name in _names(self._deployments(endpoint))]

    def deployment(self, endpoint: str, name: str) -> Deployment:
        """One deployment.

        Raises:
            NotFound: there is none of this name, or no such endpoint.
            NewerSchema, CorruptLog: it can't be read.
        """
        self.get(endpoint)
        there = self.deployments(endpoint)
        return _read(self._deployment(endpoint, name), Deployment, f"deployment {name!r} of {endpoint!r}", there)

    def put_deployment(self, deployment: Deployment) -> None:
        """Define a deployment, durably.

        Raises:
            NotFound: there is no such endpoint.
        """
        self.get(deployment.endpoint)
        _write(self._deployment(deployment.endpoint, deployment.name), deployment)

    def remove_deployment(self, endpoint: str, name: str) -> None:
        """Forget a deployment. Its jobs stay. Raises NotFound."""
        self.deployment(endpoint, name)
        self._deployment(endpoint, name).unlink(missing_ok=True)
        sync_folder(self._deployments(endpoint))

    def _file(self, name: str) -> Path:
        return self.folder / name / "endpoint.json"

    def _deployments(self, endpoint: str) -> Path:
        return self.folder / endpoint / "deployments"

    def _deployment(self, endpoint: str, name: str) -> Path:
        return self._deployments(endpoint) / f"{name}.json"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in folder.iterdir() if each.name[0] != ".")
    except FileNotFoundError:
        return []


def _read(path: Path, kind: type[Record], what: str, there: list[str]) -> Record:
    try:
        return decode(path.read_bytes(), kind, path)
    except FileNotFoundError as error:
        close = get_close_matches(path.stem if path.stem != "endpoint" else path.parent.name, there, n=1)
        raise NotFound(f"There is no {what}{f': did you mean {close[0]!r}?' if close else ''}.") from error


def _write(path: Path, record: Endpoint | Deployment) -> None:
    replace_file(path, encode(record), mode=PRIVATE_FILE)
    sync_file(path)
    sync_folder(path.parent)
