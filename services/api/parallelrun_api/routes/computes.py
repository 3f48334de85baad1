"""Named pools of nodes."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any, Final

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Request, Response

from parallelrun_api.context import Ctx
from parallelrun_api.http.answers import json_answer, no_content
from parallelrun_api.routes.responses import defined, document_body, problems
from parallelrun_api.submission.upload import read_document
from parallelrun_api.views.shown import rfc3339
from parallelrun_core.answers.computes import Compute, ComputeList, ComputeNode, ComputeStatus
from parallelrun_core.computes.catalog import definition_fields
from parallelrun_core.computes.definition import NAME_PATTERN
from parallelrun_core.computes.definition import Compute as Definition
from parallelrun_core.computes.kinds import kinds
from parallelrun_core.store.provisioning import ProvisioningStatus as Status
from parallelrun_core.untrusted.sanitize import visible

router = APIRouter(prefix="/v1", tags=["computes"])

_EXAMPLE_YAML: Final = """\
type: local
max_instances: 4
idle_time_before_scale_down: 60
"""
SCHEMAS: Final = {kind: f"{kind.capitalize()}Compute" for kind in kinds()}
"""The name of the schema of each kind."""
_DEFINITION: Final[dict[str, Any]] = {
    "oneOf": [{"$ref": f"#/components/schemas/{schema}"} for schema in SCHEMAS.values()],
    "discriminator": {
        "propertyName": "type",
        "mapping": {kind: f"#/components/schemas/{schema}" for kind, schema in SCHEMAS.items()},
    },
}
_BODY: Final = document_body(
    _DEFINITION,
    "A definition, without any secret; one of Azure ML's, of type `amlcompute`, is taken as well. `name` may be left "
    "out.",
    example=("local", _EXAMPLE_YAML),
)
Name = Annotated[str, Path(description="Name of a compute.", pattern=NAME_PATTERN, examples=["cpu-cluster"])]


@router.get("/computes", summary="List computes", response_model=ComputeList, responses=problems())
def list_computes(context: Ctx) -> Response:
    """All computes, by name."""
    statuses, costs = context.computes.statuses(), _costs(context)
    items = [_shown(each, statuses.get(each.name), costs[each.name]) for each in context.computes.all()]
    return json_answer(ComputeList(items=items))


@router.get("/computes/{compute}", summary="Get a compute", response_model=Compute, responses=problems(404))
def get_compute(compute: Name, context: Ctx) -> Response:
    """Return one compute with its status: its nodes, what they wait for, and when its engine is asked again."""
    return json_answer(
        _shown(context.computes.get(compute), context.computes.status(compute), _costs(context)[compute])
    )


@router.put(
    "/computes/{compute}",
    summary="Define a compute",
    response_model=Compute,
    response_description="It is defined anew.",
    responses=defined(Compute),
    openapi_extra=_BODY,
)
async def put_compute(compute: Name, request: Request, context: Ctx) -> Response:
    """Define a compute, durably, or define it anew; the provisioner sees that within seconds, and tries again at once
    what its engine had refused. Only the server's own token, and those that it names as operators, may (403)."""
    context.operators.check(request.state.token_name)
    document = await read_document(request)
    defined, is_new = await run_sync(context.computes.put, compute, document)
    return json_answer(_shown(defined, None), 201 if is_new else 200)


@router.delete(
    "/computes/{compute}",
    summary="Delete a compute",
    status_code=204,
    response_class=Response,
    response_description="It is gone. Its nodes are drained and given back.",
    responses=problems(403, 404, 409),
)
def delete_compute(compute: Name, request: Request, context: Ctx) -> Response:
    """Forget a compute. One that a job runs on which has not ended, or on which a schedule makes jobs, can't be deleted
    (409). Who may is as for defining one."""
    context.operators.check(request.state.token_name)
    context.computes.remove(compute)
    return no_content()


def _costs(context: Ctx) -> defaultdict[str, float]:
    """The cost of an hour of the nodes that each compute has now."""
    settings, costs = context.settings, defaultdict[str, float](float)
    if settings.cost_per_slot_hour or settings.cost_per_gpu_hour:
        for info, is_alive in context.nodes.all():
            if is_alive and info.compute:
                cost = info.slots * settings.cost_per_slot_hour + info.gpu_count * settings.cost_per_gpu_hour
                costs[info.compute] += cost
    return costs


def _shown(compute: Definition, status: Status | None, cost_per_hour: float = 0.0) -> Compute:
    fields = definition_fields(compute)
    return Compute(
        name=compute.name,
        type=str(fields["type"]),
        min_instances=compute.min_instances,
        max_instances=compute.max_instances,
        is_default=compute.is_default,
        definition=fields,
        status=_status(status) if status is not None else None,
        cost_per_hour=round(cost_per_hour, 4),
    )


def _status(status: Status) -> ComputeStatus:
    return ComputeStatus(
        at=rfc3339(status.at),
        wanted=status.wanted,
        ready=status.ready,
        launching=status.launching,
        leaving=status.leaving,
        failures=status.failures,
        why=visible(status.why),
        next_attempt=rfc3339(status.next_attempt) if status.next_attempt > status.at else None,
        nodes=[
            ComputeNode(node=each.node, stage=each.stage, since=rfc3339(each.since), words=visible(each.words))
            for each in status.nodes
        ],
        plan=status.plan,
        plans=status.plans,
    )
