"""The contract with clients, as an OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from parallelrun_api.http.lazy_fastapi import LazyRoute
from parallelrun_api.models import Problem
from parallelrun_api.routes.computes import SCHEMAS as COMPUTES
from parallelrun_api.schemas import fill_in_answers
from parallelrun_core.computes.kinds import model_of
from parallelrun_core.datastores.definition import OF_TYPE
from parallelrun_core.limits.definition import Limit
from parallelrun_core.spec import JobSpec, PipelineSpec

_REF: Final = "#/components/schemas/{model}"
_SECURITY_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "Not needed on a loopback address if no token was set.",
    }
}


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an app: what FastAPI derives, with what it can't know."""
    whole = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        license_info=app.license_info,
        routes=[each.api_route for each in app.routes if isinstance(each, LazyRoute)],
        tags=[
            {"name": "jobs", "description": "Submit, follow, cancel."},
            {"name": "files", "description": "Logs and outputs."},
            {"name": "computes", "description": "Named pools of nodes."},
            {"name": "datastores", "description": "Named places in object stores."},
            {"name": "assets", "description": "Names for data, models, environments, components and code."},
            {"name": "schedules", "description": "Jobs that are made when they are due."},
            {"name": "batch endpoints", "description": "Jobs over data that whoever calls them gives."},
            {"name": "nodes", "description": "Where mini-batches run."},
            {"name": "tokens", "description": "Who may use this server, and for what."},
            {"name": "session", "description": "Sign a browser in and out."},
            {"name": "operations", "description": "For those who run the server."},
        ],
    )
    components = whole.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    defined: dict[str, type[BaseModel]] = {model.__name__: model for model in OF_TYPE.values()}
    defined["Limit"] = Limit
    defined |= {title: model_of(kind) for kind, title in COMPUTES.items()}
    others: list[tuple[str, type[BaseModel]]] = [(model.__name__, model) for model in (JobSpec, PipelineSpec, Problem)]
    for title, model in [*others, *defined.items()]:
        schema = {**model.model_json_schema(ref_template=_REF), "title": title}
        for name, each in {**schema.pop("$defs", {}), title: schema}.items():
            if schemas.setdefault(name, each) != each:
                raise ValueError(f"two models have the name {name}: a client would take one for the other")
    fill_in_answers(schemas)
    _close_patterns(schemas)
    for title in defined:
        schemas[title]["required"].remove("name")  # the path has it
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = _SECURITY_SCHEMES
    whole["security"] = [{"token": []}]
    return whole


def _close_patterns(part: Any) -> None:
    """Say of each object whose keys have a pattern that it has no other keys, which pydantic leaves out."""
    if isinstance(part, list):
        for each in part:
            _close_patterns(each)
    elif isinstance(part, dict):
        if "patternProperties" in part:
            part["additionalProperties"] = False
        for each in part.values():
            _close_patterns(each)
