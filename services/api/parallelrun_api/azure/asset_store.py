"""Versions of assets as the client has sent them: codes, data, models, environments and components.

A version is written once; what may change of it (its description, its tags, whether it is archived) is beside it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from parallelrun_api.azure.ids import SINGULAR
from parallelrun_api.azure.names import checked_name
from parallelrun_api.people.access import Subject, not_owned
from parallelrun_api.people.person import CURRENT
from parallelrun_core.durable_files import replace_durably, write_once
from parallelrun_core.errors import Conflict, InvalidInput, NotFound
from parallelrun_core.layout import PRIVATE_FILE, PRIVATE_FOLDER

KINDS: Final = tuple(SINGULAR)
LATEST: Final = "latest"
DEFAULT: Final = "azureml_default"
"""What the client asks for where its user names no version of a component: the latest."""
CHANGEABLE: Final = ("description", "tags", "isArchived", "properties", "stage", "provisioningState")
ANONYMOUS: Final = frozenset({"azureml_anonymous", "CliV2AnonymousEnvironment", "DefaultNcdEnv"})
"""What the client calls components and environments that are written in the place where they are used."""
_OF_THE_SENDER: Final = frozenset({"name", "id", "version", "_source"})
"""Fields on which the content of a component doesn't depend: its client leaves them out of the digest of it."""
_EMPTY: Final[tuple[object, ...]] = (None, False, "", {}, [])
"""Values that the client sends for what is not there, or leaves out."""


class AssetStore:
    """The assets below a root folder. Safe to share between threads and processes."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "azure" / "assets"

    def put(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Store a version, durably; again with the same content, or with what may change, it is the same version. That
        of somebody else stays as it is: clients call code and what has no name by the content, which several persons
        have.

        Raises:
            Conflict: the version has another content.
            NotAllowed: it would be one more version of somebody else's code.
        """
        path, person = self._file(kind, name, version), CURRENT.get()
        owner = self._owner_of(kind, name) if kind == "codes" and not path.exists() else None
        if owner is not None and not person.may_change(owner):
            raise not_owned(Subject("asset", name, kind), owner)
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        fixed = {key: value for key, value in properties.items() if key not in CHANGEABLE and value not in _EMPTY}
        record = {"created": time.time(), "properties": fixed, "owner": person.owner}
        try:
            write_once(path, json.dumps(record).encode(), mode=PRIVATE_FILE)
        except FileExistsError as error:
            stored = _read(path)
            if _content(stored["properties"]) != _content(fixed):
                hint = "a version never changes: give the next one another version"
                raise Conflict(
                    f"{kind} {name} has a version {version} already, with another content; {hint}."
                ) from error
            if not person.may_change(stored.get("owner", person.owner)):
                return self.get(kind, name, version)
        changeable = {key: value for key, value in properties.items() if key in CHANGEABLE and value is not None}
        replace_durably(path.with_suffix(".now"), json.dumps(changeable).encode(), mode=PRIVATE_FILE)
        return self.get(kind, name, version)

    def get(self, kind: str, name: str, version: str) -> dict[str, Any]:
        """Return one version: `created`, in seconds since the epoch, and `properties`.

        Raises:
            NotFound: there is none.
        """
        path = self._file(kind, name, self.resolved(kind, name, version))
        try:
            record = _read(path)
        except FileNotFoundError as error:
            raise NotFound(f"There is no version {version[:80]!r} of {kind} {name[:80]!r}.") from error
        return {**record, "version": path.stem, "properties": {**record["properties"], **_changeable(path)}}

    def resolved(self, kind: str, name: str, version: str) -> str:
        """The version that a label stands for; a version stands for itself.

        Raises:
            NotFound: nothing has this name.
        """
        if version not in (LATEST, DEFAULT):
            return version
        versions = self.versions(kind, name)
        if not versions:
            raise NotFound(f"There is nothing called {name[:80]!r} among the {kind}.")
        return versions[0]

    def versions(self, kind: str, name: str) -> list[str]:
        """The versions of a name, the newest first."""
        folder = self._folder_of(kind, name)
        try:
            names = [
                entry
                for entry in sorted(each.name for each in folder.iterdir())
                if entry.endswith(".json") and not entry.startswith(".")
            ]
        except FileNotFoundError:
            return []
        ages = sorted(((os.stat(folder / entry).st_mtime_ns, entry) for entry in names), reverse=True)
        return [entry.removesuffix(".json") for _, entry in ages]

    def names(self, kind: str) -> list[str]:
        """The names of a kind, in order."""
        try:
            return sorted(each.name for each in (self._folder / _checked_kind(kind)).iterdir())
        except FileNotFoundError:
            return []

    def _owner_of(self, kind: str, name: str) -> str | None:
        """The person who made the first version of a name; None: nobody has, or it has no owner on record."""
        versions = self.versions(kind, name)
        return _read(self._file(kind, name, versions[-1])).get("owner") if versions else None

    def _folder_of(self, kind: str, name: str) -> Path:
        return self._folder / _checked_kind(kind) / checked_name(name)

    def _file(self, kind: str, name: str, version: str) -> Path:
        return self._folder_of(kind, name) / f"{checked_name(version)}.json"


def _checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidInput.at("kind", f"{kind[:40]!r} is no kind of assets", f"there are {', '.join(KINDS)}")
    return kind


def _content(properties: dict[str, Any]) -> dict[str, Any]:
    """The properties that another version of a component would have."""
    spec = properties.get("componentSpec")
    if not isinstance(spec, dict):
        return properties
    return {**properties, "componentSpec": {key: value for key, value in spec.items() if key not in _OF_THE_SENDER}}


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def _changeable(path: Path) -> dict[str, Any]:
    try:
        return _read(path.with_suffix(".now"))
    except (FileNotFoundError, ValueError):
        return {}
