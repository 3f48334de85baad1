"""Descriptions of parameters and responses that several routes share in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Header, Path
from starlette.convertors import StringConvertor

from parallelrun_api.submission.upload import FORM_TYPE, JSON_TYPE, YAML_TYPES
from parallelrun_core.answers.answer import Answer

_PROBLEMS: Final = {
    400: "The body can't be read as JSON in UTF-8.",
    401: "The token is missing or wrong.",
    403: "The token may not do this, or the request comes from a page of another origin.",
    404: "There is no such job, file, node, compute, datastore or asset.",
    409: "The current state doesn't allow this.",
    413: "The body is over a limit.",
    415: "The body has an unsupported format.",
    416: "The file has no such bytes.",
    421: "The Host header names another server.",
    422: "Something in the request is not valid; `errors` lists everything.",
    429: "Too many such requests are being answered right now, or a quota of this person is used up.",
    431: "The path, its query and the headers together are over a limit.",
    503: "Redis or the storage can't be used right now.",
    507: "There is too little free space on the cluster's volume.",
}
_RETRY_AFTER: Final = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}


class JobConvertor(StringConvertor):
    """A part of a path, without the verb that may follow a job's id: `job_01kav3x8n2h7q5m9c4t6:cancel`."""

    regex = "[^/:]+"


JobId = Annotated[str, Path(description="Id of a job.", examples=["job_01kav3x8n2h7q5m9c4t6"])]
TraceParent = Annotated[
    str | None,
    Header(
        description="The span to whose trace the job belongs, as https://www.w3.org/TR/trace-context/ has it. What is "
        "none is passed over."
    ),
]
FilePath = Annotated[str, Path(description="A path from the listing.")]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with, beside those of all routes."""
    return {
        status: {
            "description": _PROBLEMS[status],
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            **({"headers": _RETRY_AFTER} if status in (429, 503, 507) else {}),
        }
        for status in sorted({401, 421, 422, 431, 503, *statuses})
    }


def created(model: type[Answer]) -> dict[int | str, dict[str, Any]]:
    """The answer of a route that defines something by a name, beside that of one that defines it anew."""
    return {201: {"model": model, "description": "It is defined."}}


def document_body(
    schema: dict[str, Any], description: str = "", *, example: tuple[str, str] | None = None, form: Any = None
) -> dict[str, Any]:
    """A body that is a document, as JSON or YAML.

    Args:
        example: its name, and it as YAML.
        form: what `zip_form` returns, if a zip may come with the document.
    """
    in_yaml = {"schema": schema} | ({"examples": {example[0]: {"value": example[1]}}} if example else {})
    content = {JSON_TYPE: {"schema": schema}, **dict.fromkeys(YAML_TYPES, in_yaml)}
    body = {"content": content | ({FORM_TYPE: form} if form else {}), "required": True}
    return {"requestBody": body | ({"description": description} if description else {})}


def zip_form(part: str, of_document: str, of_zip: str) -> dict[str, Any]:
    """A form of a document, `spec`, and a zip, which is called `part`, with their descriptions."""
    zipped = {"type": "string", "contentMediaType": "application/zip", "description": of_zip}
    properties = {"spec": {"type": "string", "description": of_document}, part: zipped}
    schema = {"type": "object", "required": ["spec", part], "properties": properties}
    return {"schema": schema, "encoding": {part: {"contentType": "application/zip"}}}


def content(media_type: str, description: str, schema: dict[str, Any] | None = None) -> dict[int | str, dict[str, Any]]:
    """An answer that isn't JSON."""
    return {200: {"description": description, "content": {media_type: {"schema": schema or {"type": "string"}}}}}
