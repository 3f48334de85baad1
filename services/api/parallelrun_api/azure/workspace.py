"""The workspace with its addresses and datastores."""

from __future__ import annotations

import time
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure import credentials
from parallelrun_api.azure.answers import FacadeRoute, NotSupported, answer, resource
from parallelrun_api.azure.auth import BLOBS, PREFIX
from parallelrun_api.azure.blobs.names import ARTIFACTS, UPLOADS
from parallelrun_api.azure.bodies import read_resource
from parallelrun_api.azure.documents import in_snake_case
from parallelrun_api.azure.facade import READS, WORKSPACE, Facade, FacadeOf, own_url, scope_of
from parallelrun_core.datastores.definition import Datastore
from parallelrun_core.errors import Conflict, NotFound

router = APIRouter(include_in_schema=False, route_class=FacadeRoute)

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
PROVIDED: Final = f"{PREFIX}/subscriptions/{{subscription}}{_PROVIDER}"


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


@router.get(PROVIDED + "/workspaces")
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
async def list_datastores(request: Request, facade: FacadeOf) -> Response:
    """All datastores; with `isDefault`, only the default one."""
    names = list(BUILT_IN)
    if request.query_params.get("isDefault", "").lower() == "true":
        names = names[:1]
    else:
        names += [each.name for each in await run_sync(facade.context.datastores.all) if each.type in _KINDS]
    return answer({"value": [await run_sync(_datastore, facade, request, name) for name in names]})


@router.get(WORKSPACE + "/datastores/{name}")
def get_datastore(name: str, request: Request, facade: FacadeOf) -> Response:
    return answer(_datastore(facade, request, name))


@router.put(WORKSPACE + "/datastores/{name}", name="put_datastore")
async def put_datastore(name: str, request: Request, facade: FacadeOf) -> Response:
    """Define a datastore, or define it anew. One with a key or a token in it is refused: nodes have credentials."""
    if name in BUILT_IN:
        raise Conflict(f"The datastore {name!r} is this server's own, and stays as it is.")
    _, properties = await read_resource(request, "a datastore")
    _, is_new = await run_sync(facade.context.datastores.put, name, _definition(properties))
    return answer(await run_sync(_datastore, facade, request, name), 201 if is_new else 200)


@router.delete(WORKSPACE + "/datastores/{name}", name="delete_datastore")
def delete_datastore(name: str, facade: FacadeOf) -> Response:
    """Forget a datastore; what is in the store stays."""
    if name in BUILT_IN:
        raise Conflict(f"The datastore {name!r} is this server's own, and stays.")
    facade.context.datastores.remove(name)
    return Response(status_code=200)


def _definition(properties: dict[str, Any]) -> dict[str, Any]:
    """The document of a datastore that a client has sent.

    Raises:
        NotSupported: it is of a type that can't be had here.
    """
    sent_type = str(properties.get("datastoreType", ""))
    kind = next((ours for ours, (theirs, _) in _KINDS.items() if theirs == sent_type), "")
    if not kind:
        raise NotSupported(
            f"ParallelRun has no datastores of type {sent_type[:60]!r}: {', '.join(_KINDS)} (docs/storage.md)."
        )
    container = _KINDS[kind][1]
    fields = {
        "type": kind,
        "account_name": properties.get("accountName"),
        in_snake_case(container): properties.get(container),
        "endpoint": properties.get("endpoint"),
        "protocol": properties.get("protocol"),
        "description": properties.get("description"),
        "tags": properties.get("tags"),
    }
    credentials = properties.get("credentials")
    if isinstance(credentials, dict) and credentials.get("credentialsType") not in (None, "None"):
        fields["credentials"] = {"account_key": ""}  # what is in it is repeated to nobody
    return {key: value for key, value in fields.items() if value is not None}


@router.post(WORKSPACE + "/datastores/{name}/listSecrets", name="hand_out_signature", tags=[READS])
async def list_secrets(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return what its container can be used with, for some hours: a signature."""
    if name not in BUILT_IN:
        raise NotSupported("The API has no credentials of other stores: nodes have them (docs/storage.md).")
    rights = "rw" if name == "workspaceblobstore" else "r"
    return answer({"secretsType": "Sas", "sasToken": signature_of(facade, request, BUILT_IN[name], rights)})


def signature_of(facade: Facade, request: Request, container: str, rights: str) -> str:
    """The query of URLs with which whoever sent this request can use a container."""
    name = request.state.token_name
    secret = facade.token.secret_of(name)
    if secret is None:
        raise NotFound("The token has been removed.")
    return credentials.new_signature(secret, name, container, rights, now=time.time())


def blob_url(request: Request, container: str, blob: str = "") -> str:
    """The URL of a container, or of what is in it, without a signature."""
    return f"https://{request.headers.get('host', 'localhost')}{BLOBS}{ACCOUNT}/{container}" + (
        f"/{blob}" if blob else ""
    )


def _datastore(facade: Facade, request: Request, name: str) -> dict[str, Any]:
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
        properties = _defined(facade.context.datastores.get(name))
    properties = {"description": None, "tags": {}, "properties": {}, **properties}
    return resource(scope_of(request), {"datastores": name}, properties)


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
