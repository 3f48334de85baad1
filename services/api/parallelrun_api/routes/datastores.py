"""Named places in object stores."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import defined, document_body, problems
from parallelrun_api.submission.upload import read_document
from parallelrun_core.answers.cluster import Datastore, DatastoreList
from parallelrun_core.datastores.definition import NAME_PATTERN, OF_TYPE
from parallelrun_core.datastores.definition import Datastore as Definition

router = APIRouter(prefix="/v1", tags=["datastores"])

_EXAMPLE_YAML: Final = """\
type: s3
bucket: our-images
endpoint: https://minio.example.com:9000
credentials: {secret: images}
"""
_DEFINITION: Final[dict[str, Any]] = {
    "oneOf": [{"$ref": f"#/components/schemas/{model.__name__}"} for model in OF_TYPE.values()],
    "discriminator": {"propertyName": "type"},
}
_BODY: Final = document_body(
    _DEFINITION,
    "A definition, without any secret; for Azure's stores as in Azure ML. `name` may be left out.",
    example=("s3", _EXAMPLE_YAML),
)
Name = Annotated[str, Path(description="Name of a datastore.", pattern=NAME_PATTERN, examples=["images"])]


@router.get("/datastores", summary="List datastores", response_model=DatastoreList, responses=problems())
def list_datastores(context: Ctx) -> Response:
    """All datastores, by name."""
    return json_answer(DatastoreList(items=[_shown(each) for each in context.datastores.all()]))


@router.get("/datastores/{datastore}", summary="Get a datastore", response_model=Datastore, responses=problems(404))
def get_datastore(datastore: Name, context: Ctx) -> Response:
    """Return one datastore. No answer ever has its credentials: the server doesn't know them."""
    return json_answer(_shown(context.datastores.get(datastore)))


@router.put(
    "/datastores/{datastore}",
    summary="Define a datastore",
    response_model=Datastore,
    response_description="It is defined anew.",
    responses=defined(Datastore),
    openapi_extra=_BODY,
)
async def put_datastore(datastore: Name, request: Request, context: Ctx) -> Response:
    """Define a datastore, durably, or define it anew; jobs that run see that within seconds. A document with a secret
    in it is refused: nodes have credentials in their environment, by their role, or in a file that it may name."""
    document = await read_document(request)
    defined, is_new = await run_sync(context.datastores.put, datastore, document)
    return json_answer(_shown(defined), 201 if is_new else 200)


@router.delete(
    "/datastores/{datastore}",
    summary="Delete a datastore",
    status_code=204,
    response_class=Response,
    response_description="It is gone. What is in the store stays.",
    responses=problems(403, 404, 409),
)
def delete_datastore(datastore: Name, context: Ctx) -> Response:
    """Forget a datastore. One that a job uses which has not ended can't be deleted (409)."""
    context.datastores.remove(datastore)
    return no_content()


def _shown(datastore: Definition) -> Datastore:
    by: Literal["node", "secret", "anonymous"]
    by = "anonymous" if datastore.anonymous else "secret" if datastore.credentials else "node"
    return Datastore(
        name=datastore.name,
        type=datastore.type,
        location=datastore.root,
        access=by,
        definition=datastore.model_dump(mode="json", exclude_defaults=True),
    )
