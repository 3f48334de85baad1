"""Named places in object stores."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Path

from parallelrun_api.routes.definition_routes import DefinitionRoutes
from parallelrun_api.routes.responses import document_body
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.cluster import Datastore, DatastoreList
from parallelrun_core.datastores.definition import OF_TYPE
from parallelrun_core.names.patterns import PLAIN_NAME

router = Operations("datastores", about="Named places in object stores.")

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


DefinitionRoutes(
    path="/datastores",
    noun="datastore",
    name=Path(alias="datastore", description="Name of a datastore.", pattern=PLAIN_NAME, examples=["images"]),
    models=(Datastore, DatastoreList),
    service=lambda context: context.datastores,
    answer=Datastore.of,
    texts=(
        "All datastores, by name.",
        "Return one datastore. No answer ever has its credentials: the server doesn't know them.",
        "Define a datastore, durably, or define it anew; jobs that run see that within seconds. A document with a "
        "secret in it is refused: nodes have credentials in their environment, by their role, or in a file that it may "
        "name.",
        "Forget a datastore. One that a job uses which has not ended can't be deleted (409).",
    ),
    removed="It is gone. What is in the store stays.",
    body=_BODY,
    remove_problems=(403, 404, 409),
).add_to(router)
