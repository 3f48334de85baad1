"""Resolution of the ids and URIs in a client's documents: assets that were sent before, and uploads."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from parallelrun_api.azure import environment_form
from parallelrun_api.azure.asset_store import ANONYMOUS
from parallelrun_api.azure.auth import BLOBS
from parallelrun_api.azure.blobs.names import UPLOADS, checked_blob, checked_container
from parallelrun_api.azure.documents import component_document
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.ids import SINGULAR, version_of
from parallelrun_api.azure.outputs import output_place
from parallelrun_api.azure.workspace import ACCOUNT
from parallelrun_core.assets.site import DEFAULT_DATASTORE
from parallelrun_core.errors import NotFound
from parallelrun_core.names.assets import Asset, Names, job_output_in
from parallelrun_core.storage.location import datastore_of, location_of

_MODELS: Final = {"customModel": "custom_model", "mlFlowModel": "mlflow_model", "tritonModel": "triton_model"}


class FacadeNames:
    """Looks up what documents of this facade name."""

    def __init__(self, facade: Facade) -> None:
        self._facade = facade
        self._asset_store = facade.asset_store
        self._blobs = facade.blobs
        self._others: Names = facade.context.assets.names

    def asset(self, kind: str, text: str) -> Asset:
        """The asset of this type that a text names.

        Raises:
            UnknownAsset: there is none.
        """
        version = version_of(text)
        if version is None or SINGULAR[version.kind] != kind:
            return self._others.asset(kind, text)
        try:
            record = self._asset_store.get(*version)
        except NotFound:
            return self._others.asset(kind, text)
        is_anonymous = kind == "environment" and version.name in ANONYMOUS
        return Asset(
            type=kind,
            name="" if is_anonymous else version.name,
            version="" if is_anonymous else record["version"],
            content=self.content(version.kind, record["properties"]),
            created=record["created"],
        )

    def place(self, text: str, *, is_output: bool = False) -> str:
        """The location that stands for another one: of an upload that is to be read, the file or folder that has it.
        Where jobs write is among the users' own files, whatever was uploaded to the same path."""
        if (job_output := job_output_in(text)) is not None:
            return job_output.within(output_place(self._facade, job_output.job, job_output.output))
        location = location_of(text)
        if datastore_of(location.path) == DEFAULT_DATASTORE and not is_output:
            path = location.path.partition("/paths/")[2]
            uploaded = self.uploaded(path)
            if path.strip("/") and os.path.lexists(uploaded):
                return uploaded
        parts = urlsplit(text)
        inside = parts.path.partition(BLOBS)[2].removeprefix(f"{ACCOUNT}/") if parts.scheme == "https" else ""
        if inside:
            container, _, blob = unquote(inside).partition("/")
            return str(self._blobs.file(checked_container(container), checked_blob(blob) if blob else ""))
        return self._others.place(text, is_output=is_output)

    def uploaded(self, path: str) -> str:
        """Return where a path is that the client has uploaded to the default datastore."""
        path = path.rstrip("/")
        return str(self._blobs.file(UPLOADS, checked_blob(path)) if path else self._blobs.folder / UPLOADS)

    def content(self, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Return what an asset that the client has sent is, as documents have it."""
        match kind:
            case "codes":
                return {"path": self.place(str(properties.get("codeUri", "")))}
            case "data":
                return {"type": properties.get("dataType"), "path": self.place(str(properties.get("dataUri", "")))}
            case "models":
                model = str(properties.get("modelType") or "custom_model")
                return {"type": _MODELS.get(model, model), "path": self.place(str(properties.get("modelUri", "")))}
            case "environments":
                return environment_form.content_of(properties, self.place)
            case "components":
                return {"type": "parallel", "document": component_document(properties.get("componentSpec") or {})}
        raise NotImplementedError(f"what clients of Azure ML send of {kind}")
