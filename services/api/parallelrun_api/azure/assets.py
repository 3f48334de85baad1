"""Versions of codes, data, models, environments and components: created, shown, listed, archived."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from parallelrun_api.azure.answers import FaceRoute, answer
from parallelrun_api.azure.face import WORKSPACE, Face, FaceOf, scope_of
from parallelrun_api.azure.shelf import KINDS, LATEST
from parallelrun_api.azure.workspace import blob_url, signature_of
from parallelrun_api.submission.upload import read_document
from parallelrun_core.errors import InvalidInput, NotFound


class _KindConvertor(StringConvertor):
    """A kind of assets in a path."""

    regex = "|".join(KINDS)


register_url_convertor("kind", _KindConvertor())
router = APIRouter(prefix=WORKSPACE, include_in_schema=False, route_class=FaceRoute)

_KIND: Final = "Microsoft.MachineLearningServices/workspaces"
_HASH: Final = "hash_sha256"
_ASSET: Final = "/{kind:kind}/{name}"
_VERSION: Final = _ASSET + "/versions/{version}"


@router.get(_ASSET + "/versions")
async def list_versions(kind: str, name: str, request: Request, face: FaceOf) -> Response:
    """The versions of a name, the newest first; with `hash`, only those of the same content."""
    wanted = request.query_params.get("hash", "")
    view = request.query_params.get("listViewType", "ActiveOnly")
    most = request.query_params.get("$top", "")
    items = await run_sync(_versions, face, scope_of(request), kind, name)
    if wanted:
        items = [item for item in items if item["properties"].get("properties", {}).get(_HASH) == wanted]
    archived = {"ActiveOnly": (False,), "ArchivedOnly": (True,)}.get(view, (False, True))
    items = [item for item in items if bool(item["properties"].get("isArchived")) in archived]
    return answer({"value": items[: int(most)] if most.isdecimal() else items})


@router.get(_VERSION)
async def get_version(kind: str, name: str, version: str, request: Request, face: FaceOf) -> Response:
    """One version."""
    return answer(await run_sync(_shown, face, scope_of(request), kind, name, version))


@router.put(_VERSION, name="put_asset")
async def put_version(kind: str, name: str, version: str, request: Request, face: FaceOf) -> Response:
    """Store a version. It never changes; its description, its tags and whether it is archived may."""
    document = await read_document(request)
    properties = document.get("properties") if isinstance(document, dict) else None
    if not isinstance(properties, dict):
        raise InvalidInput.at("/properties", "a version has properties")
    await run_sync(face.shelf.put, kind, name, version, properties)
    return answer(await run_sync(_shown, face, scope_of(request), kind, name, version), 201)


@router.post(_VERSION + "/startPendingUpload", name="hand_out_signature")
async def start_upload(kind: str, name: str, version: str, request: Request, face: FaceOf) -> Response:
    """Where the content of a version is to be uploaded: a container of its own."""
    container = f"code-{hashlib.sha256(f'{kind}/{name}/{version}'.encode()).hexdigest()[:32]}"
    uri = blob_url(request, container)
    signed = f"{uri}?{signature_of(face, request, container, 'rw')}"
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
async def get_container(kind: str, name: str, request: Request, face: FaceOf) -> Response:
    """A name, with its latest version."""
    return answer(await run_sync(_container, face, scope_of(request), kind, name))


@router.put(_ASSET, name="put_asset")
async def put_container(kind: str, name: str, request: Request, face: FaceOf) -> Response:
    """Archive or restore all versions of a name."""
    document = await read_document(request)
    properties = document.get("properties") if isinstance(document, dict) else None
    is_archived = bool((properties or {}).get("isArchived"))
    for version in await run_sync(face.shelf.versions, kind, name):
        record = await run_sync(face.shelf.get, kind, name, version)
        await run_sync(face.shelf.put, kind, name, version, {**record["properties"], "isArchived": is_archived})
    return answer(await run_sync(_container, face, scope_of(request), kind, name))


@router.get("/{kind:kind}")
async def list_names(kind: str, request: Request, face: FaceOf) -> Response:
    """All names of a kind."""
    names = await run_sync(face.shelf.names, kind)
    return answer({"value": [await run_sync(_container, face, scope_of(request), kind, name) for name in names]})


def _container(face: Face, scope: str, kind: str, name: str) -> dict[str, Any]:
    versions = face.shelf.versions(kind, name)
    if not versions:
        raise NotFound(f"There is nothing called {name[:80]!r} among the {kind}.")
    latest = face.shelf.get(kind, name, versions[0])
    properties = {"latestVersion": versions[0], "nextVersion": _next(versions), "isArchived": False, "tags": {}}
    more = {key: latest["properties"][key] for key in ("description", "dataType") if key in latest["properties"]}
    return {
        "id": f"{scope}/{kind}/{name}",
        "name": name,
        "type": f"{_KIND}/{kind}",
        "systemData": _dates(latest["created"]),
        "properties": {**properties, **more},
    }


def _next(versions: list[str]) -> str:
    return str(max((int(version) for version in versions if version.isdecimal() and len(version) < 10), default=0) + 1)


def _versions(face: Face, scope: str, kind: str, name: str) -> list[dict[str, Any]]:
    return [_shown(face, scope, kind, name, version) for version in face.shelf.versions(kind, name)]


def _shown(face: Face, scope: str, kind: str, name: str, version: str) -> dict[str, Any]:
    record = face.shelf.get(kind, name, version if version != LATEST else face.shelf.resolved(kind, name, LATEST))
    return {
        "id": f"{scope}/{kind}/{name}/versions/{record['version']}",
        "name": record["version"],
        "type": f"{_KIND}/{kind}/versions",
        "systemData": _dates(record["created"]),
        "properties": {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}, **record["properties"]},
    }


def _dates(created: float) -> dict[str, str]:
    when = datetime.fromtimestamp(created, UTC).isoformat()
    who = {"createdBy": "parallelrun", "createdByType": "User", "lastModifiedBy": "parallelrun"}
    return {**who, "createdAt": when, "lastModifiedAt": when, "lastModifiedByType": "User"}
