"""The assets of this server as clients of Azure ML know them: those that they have sent, and those made otherwise.

What the client registers with a name is made an asset like any other: the command line, jobs in every form and the
site know it. Its code and what it names without a name of its own belong to this facade alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

from parallelrun_api.azure import environment_form
from parallelrun_api.azure.blobs.names import container_of
from parallelrun_api.azure.documents import component_document
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.ids import SINGULAR
from parallelrun_api.azure.payload_store import Sent
from parallelrun_api.azure.resolving import FacadeNames
from parallelrun_api.azure.whole_component import WholeComponents
from parallelrun_api.people.person import CURRENT
from parallelrun_core.answers.assets import Asset
from parallelrun_core.assets.kinds import model_of
from parallelrun_core.errors import NotFound

SHARED: Final = {kind: asset_type for kind, asset_type in SINGULAR.items() if kind != "codes"}
"""The kinds that are assets beyond this facade, by what the client calls them."""
_PAGE: Final = 1000
"""Assets, or versions of one, that are read at once."""
HASH: Final = "hash_sha256"
"""The property of code with the digest that its client has computed."""
_CURATED: Final[dict[str, Any]] = {"created": 0.0, "properties": {"image": "curated"}}
"""A version of an environment of Azure ML's own, which every workspace has."""


class FacadeAssets:
    """Versions of assets. Safe to share between threads."""

    def __init__(self, facade: Facade) -> None:
        self._facade = facade
        self._assets = facade.context.assets
        self._names = FacadeNames(facade)
        self._components = WholeComponents(facade, self._names)
        self._hashes = Sent(facade.context.settings.root, "code-hashes")

    def put(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> None:
        """Store a version, durably.

        Raises:
            InvalidInput: it is none, or names what jobs may not use.
            Conflict: the version has another content.
        """
        if kind == "components":
            properties = self._as_stored(name, version, properties)
        if kind == "codes":
            self._components.check_code(self._names.content(kind, properties)["path"], "/properties/codeUri")
        # What other users see comes first: if that is refused, nothing is left behind.
        asset_type = None if properties.get("isAnonymous") else SHARED.get(kind)
        if asset_type is not None:
            self._assets.create(asset_type, name, version, self._document(kind, properties), None)
        self._facade.asset_store.put(kind, name, version, properties)
        if kind == "codes" or model_of(SINGULAR[kind]).has_files:
            self._facade.blobs.close(container_of(kind, name, version))
        if kind == "codes":
            self._remember_hash(name, version, properties)
        is_archived = properties.get("isArchived")
        if asset_type is not None and isinstance(is_archived, bool):
            self._assets.set_archived(asset_type, name, version, is_archived=is_archived)

    def code_with(self, digest: str) -> tuple[str, str] | None:
        """The name and the version of code that was sent with this hash; None if none was.

        It must have been sent by the person of the request: nobody checks hashes.
        """
        code = self._hashes.get(_hash_key(digest))
        return (code["name"], code["version"]) if code else None

    def get(self, kind: str, name: str, version: str) -> dict[str, Any]:
        """Return one version: `version`, `created` in seconds since the epoch, and `properties`.

        Raises:
            NotFound: there is none.
        """
        try:
            record = self._facade.asset_store.get(kind, name, version)
        except NotFound:
            if kind not in SHARED:
                raise
        else:
            return self._archived_like_asset(kind, name, record)
        try:
            return _as_sent(kind, self._assets.get(SHARED[kind], name, version))
        except NotFound:
            if not _is_curated(kind, name):
                raise
        return {**_CURATED, "version": version}

    def versions(self, kind: str, name: str) -> list[dict[str, Any]]:
        """All versions of a name, the newest first; none if there is no such name."""
        store = self._facade.asset_store
        by_version = {each: store.get(kind, name, each) for each in store.versions(kind, name)}
        if kind in SHARED:
            with suppress(NotFound):
                shared_versions = list(_of_all_pages(partial(self._assets.versions, SHARED[kind], name)))
                archived = {each.version: each.archived for each in shared_versions}
                sent = {each: _with_archived(record, archived.get(each)) for each, record in by_version.items()}
                by_version = {each.version: _as_sent(kind, each) for each in shared_versions} | sent
        if not by_version and _is_curated(kind, name):
            return [{**_CURATED, "version": "1"}]
        return sorted(by_version.values(), key=lambda each: float(each["created"]), reverse=True)

    def names(self, kind: str) -> list[str]:
        """All names of a kind, in order."""
        names = set(self._facade.asset_store.names(kind))
        if kind in SHARED:
            names |= {each.name for each in _of_all_pages(partial(self._assets.page, SHARED[kind]))}
        return sorted(names)

    def _as_stored(self, name: str, version: str, properties: dict[str, Any]) -> dict[str, Any]:
        """A component as it is stored, if a client sends back what it got: with its name and its version in it."""
        with suppress(NotFound):
            spec = self.get("components", name, version)["properties"].get("componentSpec") or {}
            named = {"name": name, "version": version}
            if {**(properties.get("componentSpec") or {}), **named} == {**spec, **named}:
                return {**properties, "componentSpec": spec}
        return properties

    def _remember_hash(self, name: str, version: str, properties: dict[str, Any]) -> None:
        digest = (properties.get("properties") or {}).get(HASH)
        if isinstance(digest, str):
            self._hashes.put(_hash_key(digest), {"name": name, "version": version})

    def _archived_like_asset(self, kind: str, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Properties that a client has sent, archived if the asset is: the command line archives assets, too."""
        if kind in SHARED:
            with suppress(NotFound):
                return _with_archived(record, self._assets.get(SHARED[kind], name, record["version"]).archived)
        return record

    def _document(self, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
        """The document that a user would have written."""
        texts = {"description": properties.get("description"), "tags": properties.get("tags")}
        about = {key: value for key, value in texts.items() if value}
        if kind == "components":
            document = component_document(properties.get("componentSpec") or {})
            document = {key: value for key, value in document.items() if key not in ("name", "version")}
            return {**about, **self._components.document(document, "/properties/componentSpec")}
        content = (
            self._components.environment(properties, "/properties/build/contextUri")
            if kind == "environments"
            else self._names.content(kind, properties)
        )
        return {**about, **content}


def _of_all_pages(read: Callable[..., tuple[list[Asset], str | None]]) -> Iterator[Asset]:
    """All that is on the pages of a list, with what is archived.

    Args:
        read: returns a page, and where the next one begins.
    """
    begin: str | None = ""
    while begin is not None:
        page, begin = read(after=begin, limit=_PAGE, with_archived=True)
        yield from page


def _with_archived(record: dict[str, Any], is_archived: bool | None) -> dict[str, Any]:
    """A version as it was sent, with whether it is archived now; None: no asset is known by it."""
    if is_archived is None:
        return record
    return {**record, "properties": {**record["properties"], "isArchived": is_archived}}


def _hash_key(digest: str) -> str:
    return hashlib.sha256(f"{CURRENT.get().name}/{digest}".encode()).hexdigest()


def _is_curated(kind: str, name: str) -> bool:
    """Return whether this is an environment of Azure ML's own. Jobs that name one that nobody here has defined are run
    by the nodes' own Python.
    """
    return kind == "environments" and name.lower().startswith("azureml-")


def _as_sent(kind: str, asset: Asset) -> dict[str, Any]:
    """An asset that was made in another way, as the client would have sent it."""
    content = asset.content
    common = {
        "description": asset.description,
        "tags": asset.tags,
        "properties": asset.properties,
        "isArchived": asset.archived,
    }
    of_kind: dict[str, Any]
    match kind:
        case "data":
            of_kind = {"dataUri": content.get("path"), "dataType": content.get("type") or "uri_folder"}
        case "models":
            of_kind = {"modelUri": content.get("path"), "modelType": content.get("type") or "custom_model"}
        case "environments":
            of_kind = environment_form.properties_of(content)
        case "components":
            of_kind = {"componentSpec": {"name": asset.name, "version": asset.version, **content.get("document", {})}}
        case _:
            raise NotImplementedError(f"what clients of Azure ML get of {kind}")
    created = datetime.fromisoformat(asset.created).timestamp()
    return {"version": asset.version, "created": created, "properties": {**common, **of_kind}}
