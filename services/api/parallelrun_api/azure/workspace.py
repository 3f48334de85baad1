"""The workspace with what it has: its addresses, datastores and computes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure import credentials
from parallelrun_api.azure.answers import FaceRoute, NotSupported, answer
from parallelrun_api.azure.auth import BLOBS, PREFIX
from parallelrun_api.azure.blobs.names import ARTIFACTS, UPLOADS
from parallelrun_api.azure.bodies import read_body
from parallelrun_api.azure.face import WORKSPACE, Face, FaceOf, own_url, scope_of
from parallelrun_core.errors import NotFound

if TYPE_CHECKING:
    from parallelrun_core.datastores.definition import Datastore

router = APIRouter(include_in_schema=False, route_class=FaceRoute)

ACCOUNT: Final = "store"
BUILT_IN: Final = {"workspaceblobstore": UPLOADS, "workspaceartifactstore": ARTIFACTS}
"""The containers of the datastores that every workspace has."""
_KINDS: Final = {
    "azure_blob": ("AzureBlob", "containerName"),
    "azure_data_lake_gen2": ("AzureDataLakeGen2", "filesystem"),
}
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
_SUFFIX: Final = "core.windows.net"
_PROVIDER: Final = "/providers/Microsoft.MachineLearningServices"
_PROVIDED: Final = f"{PREFIX}/subscriptions/{{subscription}}{_PROVIDER}"


@router.get(WORKSPACE)
async def workspace(workspace: str, request: Request) -> Response:
    """The one workspace: it has whatever name a client calls it by."""
    url, scope = own_url(request), scope_of(request)
    properties = {
        "friendlyName": workspace,
        "workspaceId": _NOBODY,
        "tenantId": _NOBODY,
        "discoveryUrl": f"{url}/discovery",
        "mlFlowTrackingUri": f"{url}/mlflow",
        "storageAccount": f"{scope.partition('/providers/')[0]}/providers/Microsoft.Storage/storageAccounts/{ACCOUNT}",
        "provisioningState": "Succeeded",
    }
    return answer(_workspace(workspace, scope, properties))


@router.get(_PROVIDED + "/workspaces")
@router.get(f"{PREFIX}/subscriptions/{{subscription}}/resourceGroups/{{group}}{_PROVIDER}/workspaces")
async def list_workspaces(request: Request) -> Response:
    """The one workspace, by a name that does for all."""
    name = "parallelrun"
    scope = f"{request.url.path.removeprefix(PREFIX).partition('/providers/')[0]}{_PROVIDER}/workspaces/{name}"
    return answer({"value": [_workspace(name, scope, {"friendlyName": name, "provisioningState": "Succeeded"})]})


def _workspace(name: str, scope: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": scope,
        "name": name,
        "type": "Microsoft.MachineLearningServices/workspaces",
        "kind": "Default",
        "location": "local",
        "tags": {},
        "identity": {"type": "SystemAssigned", "principalId": _NOBODY, "tenantId": _NOBODY},
        "properties": properties,
    }


@router.get(f"{PREFIX}/discovery")
async def discovery(request: Request) -> Response:
    """Return where each part of the service is: here."""
    url = own_url(request)
    parts = ("api", "mfe", "catalog", "pipelines", "studio", "history", "experimentation", "modelmanagement")
    return answer(dict.fromkeys(parts, url))


# Datastores


@router.get(WORKSPACE + "/datastores")
async def list_datastores(request: Request, face: FaceOf) -> Response:
    """All datastores; with `isDefault`, only the default one."""
    names = list(BUILT_IN)
    if request.query_params.get("isDefault", "").lower() == "true":
        names = names[:1]
    else:
        names += [each.name for each in await run_sync(face.context.datastores.all) if each.type in _KINDS]
    return answer({"value": [await run_sync(_datastore, face, request, name) for name in names]})


@router.get(WORKSPACE + "/datastores/{name}")
async def get_datastore(name: str, request: Request, face: FaceOf) -> Response:
    """Return one datastore."""
    return answer(await run_sync(_datastore, face, request, name))


@router.post(WORKSPACE + "/datastores/{name}/listSecrets", name="hand_out_signature")
async def list_secrets(name: str, request: Request, face: FaceOf) -> Response:
    """Return what its container can be used with, for some hours: a signature."""
    if name not in BUILT_IN:
        raise NotSupported("The API has no credentials of other stores: nodes have them (docs/storage.md).")
    rights = "rw" if name == "workspaceblobstore" else "r"
    return answer({"secretsType": "Sas", "sasToken": signature_of(face, request, BUILT_IN[name], rights)})


def signature_of(face: Face, request: Request, container: str, rights: str) -> str:
    """The query of URLs with which whoever sent this request can use a container."""
    name = request.state.token_name
    secret = face.token.secret_of(name)
    if secret is None:
        raise NotFound("The token has been removed.")
    return credentials.new_signature(secret, name, container, rights, now=time.time())


def blob_url(request: Request, container: str, blob: str = "") -> str:
    """The URL of a container, or of what is in it, without a signature."""
    return f"https://{request.headers.get('host', 'localhost')}{BLOBS}{ACCOUNT}/{container}" + (
        f"/{blob}" if blob else ""
    )


def _datastore(face: Face, request: Request, name: str) -> dict[str, Any]:
    if name in BUILT_IN:
        # The client puts `.blob.` and a suffix behind the name of the account: behind `#`, it has no effect.
        host = request.headers.get("host", "localhost")
        properties: dict[str, Any] = {
            "datastoreType": "AzureBlob",
            "accountName": f"{host}{BLOBS}{ACCOUNT}#",
            "containerName": BUILT_IN[name],
            "endpoint": _SUFFIX,
            "protocol": "https",
            "credentials": {"credentialsType": "Sas"},
            "isDefault": name == "workspaceblobstore",
        }
    else:
        properties = _defined(face.context.datastores.get(name))
    return {
        "id": f"{scope_of(request)}/datastores/{name}",
        "name": name,
        "type": "Microsoft.MachineLearningServices/workspaces/datastores",
        "properties": {"description": None, "tags": {}, "properties": {}, **properties},
    }


# Computes


@router.get(WORKSPACE + "/computes")
async def list_computes(request: Request, face: FaceOf) -> Response:
    """Return the computes that are defined; while there are none, the nodes as one compute: a client that names another
    one gets the same."""
    return answer({"value": await run_sync(_computes, face, request)})


@router.get(WORKSPACE + "/computes/{name}")
async def get_compute(name: str, request: Request, face: FaceOf) -> Response:
    """Return one of them; while there are none, the nodes, by whatever name."""
    return answer(await run_sync(_compute, face, request, name))


@router.put(WORKSPACE + "/computes/{name}")
async def put_compute(name: str, request: Request, face: FaceOf) -> Response:
    """Define a compute that is missing among those that there are. As long as there are none, and of one that there is,
    nothing changes: notebooks create a cluster before they use it."""
    document = await read_body(request)
    await run_sync(_define_missing, face, request, name, document)
    return answer(await run_sync(_compute, face, request, name))


@router.delete(WORKSPACE + "/computes/{name}", name="delete_compute")
async def delete_compute(name: str, request: Request, face: FaceOf) -> Response:
    """Forget a compute."""
    face.context.operators.check(request.state.token_name)
    await run_sync(face.context.computes.remove, name)
    return Response(status_code=200)


@router.post(WORKSPACE + "/computes/{name}/listNodes", name="list_compute_nodes")
async def list_compute_nodes(name: str, request: Request, face: FaceOf) -> Response:
    """The nodes of a compute that are there."""
    await run_sync(_compute, face, request, name)
    is_defined = bool(await run_sync(face.context.computes.all))
    alive = [node for node, is_alive in await run_sync(face.context.nodes.all) if is_alive]
    of_it = [node for node in alive if not is_defined or node.compute == name]
    nodes = [{"nodeId": node.node, "nodeState": "running" if node.busy else "idle"} for node in of_it]
    return answer({"nodes": nodes})


@router.get(_PROVIDED + "/locations/{location}/{kind}", name="list_of_location")
async def list_of_location(kind: str) -> Response:
    """Nothing: machines have no quota here, and computes no sizes of Azure's."""
    if kind not in ("usages", "vmSizes"):
        raise NotSupported(f"ParallelRun has no {kind[:60]!r}; docs/azure-client.md says what it has.")
    return answer({"value": []})


def _define_missing(face: Face, request: Request, name: str, document: object) -> None:
    """Define a compute of the default kind with the numbers of nodes that the client has sent, if that is missing."""
    computes = face.context.computes
    names = [compute.name for compute in computes.all()]
    if not names or name in names:
        return
    face.context.operators.check(request.state.token_name)
    outer = document.get("properties") if isinstance(document, dict) else None
    inner = outer.get("properties") if isinstance(outer, dict) else None
    scale = (inner or {}).get("scaleSettings") if isinstance(inner, dict) else None
    counts = scale if isinstance(scale, dict) else {}
    counts_of_nodes = {"min_instances": counts.get("minNodeCount"), "max_instances": counts.get("maxNodeCount")}
    computes.put(
        name, {"type": "amlcompute", **{key: count for key, count in counts_of_nodes.items() if count is not None}}
    )


def _computes(face: Face, request: Request) -> list[dict[str, Any]]:
    names = [compute.name for compute in face.context.computes.all()]
    return [_compute(face, request, name) for name in names or ["local"]]


def _compute(face: Face, request: Request, name: str) -> dict[str, Any]:
    if face.context.computes.all():
        return _defined_compute(face, request, name)
    alive = sum(is_alive for _, is_alive in face.context.nodes.all())
    description = "the nodes of this cluster, which are started and stopped by themselves"
    return _as_azure_has_it(request, name, _Scale(least=alive, most=alive, there=alive, wanted=alive), description)


def _defined_compute(face: Face, request: Request, name: str) -> dict[str, Any]:
    """A compute of the catalog. Raises NotFound."""
    compute, status = face.context.computes.get(name), face.context.computes.status(name)
    scale = _Scale(
        least=compute.min_instances,
        most=compute.max_instances,
        there=status.ready if status else 0,
        wanted=status.wanted if status else 0,
        idle_s=compute.idle_time_before_scale_down,
        size=compute.size or "LOCAL",
        priority="LowPriority" if compute.tier == "low_priority" else "Dedicated",
    )
    return _as_azure_has_it(request, name, scale, compute.description)


class _Scale(NamedTuple):
    """The scale of a compute."""

    least: int
    most: int
    there: int
    wanted: int
    idle_s: float = 120
    size: str = "LOCAL"
    priority: str = "Dedicated"


def _as_azure_has_it(request: Request, name: str, scale: _Scale, description: str) -> dict[str, Any]:
    return {
        "id": f"{scope_of(request)}/computes/{name}",
        "name": name,
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "location": "local",
        "tags": {},
        "properties": {
            "computeType": "AmlCompute",
            "computeLocation": "local",
            "description": description,
            "provisioningState": "Succeeded",
            "properties": {
                "vmSize": scale.size,
                "vmPriority": scale.priority,
                "scaleSettings": {
                    "minNodeCount": scale.least,
                    "maxNodeCount": scale.most,
                    "nodeIdleTimeBeforeScaleDown": f"PT{scale.idle_s:.0f}S",
                },
                "allocationState": "Steady" if scale.there == scale.wanted else "Resizing",
                "currentNodeCount": scale.there,
                "targetNodeCount": scale.wanted,
            },
        },
    }


def _defined(datastore: Datastore) -> dict[str, Any]:
    """A datastore of ours, as far as the client has words for it.

    Raises:
        NotSupported: it has none.
    """
    if datastore.type not in _KINDS:
        raise NotSupported(f"The client knows no datastore of type {datastore.type}; jobs can use it.")
    kind, container = _KINDS[datastore.type]
    fields = datastore.model_dump(mode="json")
    return {
        "datastoreType": kind,
        "accountName": fields.get("account_name"),
        container: fields.get("container_name") or fields.get("filesystem"),
        "endpoint": _SUFFIX,
        "protocol": "https",
        "credentials": {"credentialsType": "None"},
        "isDefault": False,
    }
