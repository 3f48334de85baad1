"""Versions of codes, data, models, environments and components: created, shown, listed, archived."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from parallelrun_api.azure.answers import FacadeRoute, answer, resource
from parallelrun_api.azure.asset_store import ANONYMOUS, DEFAULT, KINDS, LATEST
from parallelrun_api.azure.blobs.names import OF_CODE, OF_LOGS, OF_OUTPUTS, OF_VERSIONS, UPLOADS, container_of
from parallelrun_api.azure.bodies import read_body, read_resource
from parallelrun_api.azure.facade import READS, WORKSPACE, Facade, FacadeOf, scope_of
from parallelrun_api.azure.facade_assets import HASH, FacadeAssets
from parallelrun_api.azure.ids import without_prefix
from parallelrun_api.azure.outputs import is_all_artifacts
from parallelrun_api.azure.workspace import blob_url, signature_of
from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.names.assets import job_output_in


class _KindConvertor(StringConvertor):
    regex = "|".join(KINDS)


class _NameConvertor(StringConvertor):
    """A name in a path, without what the client has left in front of it."""

    def convert(self, value: str) -> str:
        return without_prefix(value)


register_url_convertor("kind", _KindConvertor())
register_url_convertor("asset", _NameConvertor())
router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FacadeRoute)

_ALWAYS: Final[dict[str, Any]] = {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}}
_OF_MODELS: Final[dict[str, Any]] = {"flavors": {}}
"""What the client expects of each version."""
_NUMBER: Final = re.compile("[0-9]{1,9}")
_ASSET: Final = "/{kind:kind}/{name:asset}"
_VERSION: Final = _ASSET + "/versions/{version}"


@router.get(_ASSET + "/versions")
async def list_versions(kind: str, name: str, request: Request, facade: FacadeOf) -> Response:
    """The versions of a name, the newest first; with `hash`, only those of the same content."""
    wanted_hash = request.query_params.get("hash", "")
    most = request.query_params.get("$top", "")
    if most and not _NUMBER.fullmatch(most):
        raise InvalidInput.at("/query/$top", "it is a number of at most nine digits")
    scope = scope_of(request)
    if kind == "codes" and wanted_hash:
        same = await run_sync(FacadeAssets(facade).code_with, wanted_hash)
        return answer({"value": [await run_sync(_shown, facade, scope, kind, *same)] if same else []})
    read = partial(_versions, facade, scope, kind, name)
    items = await facade.context.job_lists.run(("azure", "versions", scope, kind, name), read)
    if wanted_hash:
        items = [item for item in items if item["properties"].get("properties", {}).get(HASH) == wanted_hash]
    items = _in_view(items, request)
    return answer({"value": items[: int(most)] if most else items})


def _in_view(items: Sequence[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
    """Return the archived versions, or the others, or all, as the request asks for them."""
    view = request.query_params.get("listViewType", "ActiveOnly")
    archived = {"ActiveOnly": (False,), "ArchivedOnly": (True,)}.get(view, (False, True))
    return [item for item in items if bool(item["properties"].get("isArchived")) in archived]


@router.get(_VERSION)
def get_version(kind: str, name: str, version: str, request: Request, facade: FacadeOf) -> Response:
    asset_version = _shown(facade, scope_of(request), kind, name, version)
    properties = asset_version["properties"]
    if kind == "codes":
        properties["codeUri"] = _where_code_is(request, kind, name, asset_version["name"])
    elif kind == "models" and (job_output := job_output_in(str(properties.get("modelUri", "")))) is not None:
        # Clients download models from datastores alone, and take the name of an output for that of one.
        folder = _folder_of_output(facade, scope_of(request), job_output.job, job_output.output)
        properties["modelUri"] = job_output.within(folder)
    return answer(asset_version)


def _folder_of_output(facade: Facade, scope: str, job_name: str, output: str) -> str:
    """Return the path in a datastore where a client finds an output of a job, both as it calls them."""
    record = facade.context.jobs.folder(facade.names.job_id(job_name)).record()
    if is_all_artifacts(record, output):
        place = f"workspaceartifactstore/paths/{OF_LOGS}{job_name}"
    else:
        place = f"workspaceblobstore/paths/{OF_OUTPUTS}{job_name}/{output}"
    return f"azureml:/{scope.replace('/providers/Microsoft.MachineLearningServices', '')}/datastores/{place}/"


@router.put(_VERSION, name="put_asset")
async def put_version(kind: str, name: str, version: str, request: Request, facade: FacadeOf) -> Response:
    """Store a version. It never changes; its description, its tags and whether it is archived may."""
    _, properties = await read_resource(request, "a version")
    await run_sync(FacadeAssets(facade).put, kind, name, version, properties)
    return answer(await run_sync(_shown, facade, scope_of(request), kind, name, version), 201)


@router.post(_VERSION + "/startPendingUpload", name="hand_out_signature", tags=[READS])
async def start_upload(kind: str, name: str, version: str, request: Request, facade: FacadeOf) -> Response:
    """Return where the content of a version is to be uploaded: a container of its own, to read only
    once there is one.
    """
    container = container_of(kind, name, version)
    uri = blob_url(request, container)
    rights = "r" if await run_sync(facade.blobs.is_closed, container) else "rw"
    signed = f"{uri}?{signature_of(facade, request, container, rights)}"
    return answer(
        {
            "pendingUploadId": None,
            "pendingUploadType": "TemporaryBlobReference",
            "blobReferenceForConsumption": {
                "blobUri": uri,
                "storageAccountArmId": "",
                "credential": {"credentialType": "SAS", "sasUri": signed},
            },
        }
    )


@router.get(_ASSET)
def get_container(kind: str, name: str, request: Request, facade: FacadeOf) -> Response:
    return answer(_container(facade, scope_of(request), kind, name))


@router.put(_ASSET, name="put_asset")
async def put_container(kind: str, name: str, request: Request, facade: FacadeOf) -> Response:
    """Archive or restore all versions of a name."""
    document = await read_body(request)
    properties = document.get("properties") if isinstance(document, dict) else None
    is_archived = bool((properties or {}).get("isArchived"))
    assets = FacadeAssets(facade)
    for record in await run_sync(assets.versions, kind, name):
        await run_sync(assets.put, kind, name, record["version"], {**record["properties"], "isArchived": is_archived})
    return answer(await run_sync(_container, facade, scope_of(request), kind, name))


@router.get("/{kind:kind}")
async def list_names(kind: str, request: Request, facade: FacadeOf) -> Response:
    scope = scope_of(request)

    def listed() -> list[dict[str, Any]]:
        names = [name for name in FacadeAssets(facade).names(kind) if name not in ANONYMOUS]
        return [_container(facade, scope, kind, name) for name in names]

    items = await facade.context.job_lists.run(("azure", "names", scope, kind), listed)
    return answer({"value": _in_view(items, request)})


def _where_code_is(request: Request, kind: str, name: str, version: str) -> str:
    """The URL of code, in the form from which clients download it: with the host of a store of Azure's behind `#`."""
    digest = container_of(kind, name, version).removeprefix(OF_VERSIONS)
    return f"{blob_url(request, '').rstrip('/')}#.blob.core.windows.net/{UPLOADS}/{OF_CODE}{digest}"


def _container(facade: Facade, scope: str, kind: str, name: str) -> dict[str, Any]:
    records = FacadeAssets(facade).versions(kind, name)
    if not records:
        raise NotFound(f"There is nothing called {name[:80]!r} among the {kind}.")
    latest, versions = records[0], [record["version"] for record in records]
    is_archived = all(record["properties"].get("isArchived") for record in records)
    properties = {"latestVersion": versions[0], "nextVersion": _next(versions), "isArchived": is_archived, "tags": {}}
    more = {key: latest["properties"][key] for key in ("description", "dataType") if key in latest["properties"]}
    return resource(scope, {kind: name}, {**properties, **more}, dates=_dates(latest["created"]))


def _next(versions: list[str]) -> str:
    return str(max((int(version) for version in versions if version.isdecimal() and len(version) < 10), default=0) + 1)


def _versions(facade: Facade, scope: str, kind: str, name: str) -> list[dict[str, Any]]:
    return [_answer_of(record, scope, kind, name) for record in FacadeAssets(facade).versions(kind, name)]


def _shown(facade: Facade, scope: str, kind: str, name: str, version: str) -> dict[str, Any]:
    assets = FacadeAssets(facade)
    if version in (LATEST, DEFAULT):
        version = next((record["version"] for record in assets.versions(kind, name)), version)
    return _answer_of(assets.get(kind, name, version), scope, kind, name)


def _answer_of(record: dict[str, Any], scope: str, kind: str, name: str) -> dict[str, Any]:
    properties = record["properties"]
    if isinstance(spec := properties.get("componentSpec"), dict):
        properties = {**properties, "componentSpec": {**spec, "name": name, "version": record["version"]}}
    properties = {**_ALWAYS, **(_OF_MODELS if kind == "models" else {}), **properties}
    return resource(scope, {kind: name, "versions": record["version"]}, properties, dates=_dates(record["created"]))


def _dates(created: float) -> dict[str, str]:
    when = datetime.fromtimestamp(created, UTC).isoformat()
    changed_by = {"lastModifiedBy": "parallelrun", "lastModifiedByType": "User"}
    return {**changed_by, "createdAt": when, "lastModifiedAt": when}
