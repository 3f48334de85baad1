"""Named pools of nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from fastapi import Path

from parallelrun_api.context import Context
from parallelrun_api.routes.definition_routes import DefinitionRoutes
from parallelrun_api.routes.responses import document_body
from parallelrun_api.routes.router import Operations
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.answers.computes import Compute, ComputeList, ComputeNode, ComputeStatus
from parallelrun_core.computes.definition import Compute as Definition
from parallelrun_core.computes.kinds import kinds
from parallelrun_core.documents.codecs import definition_fields
from parallelrun_core.names.patterns import COMPUTE_NAME
from parallelrun_core.store.provisioning import ProvisioningStatus as Status
from parallelrun_core.untrusted.sanitize import visible

router = Operations("computes", about="Named pools of nodes.")

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


def _shown_now(context: Context) -> Callable[[Definition], Compute]:
    statuses, costs = context.computes.statuses(), _costs(context)
    return lambda compute: _shown(compute, statuses.get(compute.name), costs[compute.name])


def _costs(context: Context) -> defaultdict[str, float]:
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
    return answer_of(
        Compute,
        compute,
        type=str(fields["type"]),
        definition=fields,
        status=_status(status) if status is not None else None,
        cost_per_hour=round(cost_per_hour, 4),
    )


def _status(status: Status) -> ComputeStatus:
    return answer_of(
        ComputeStatus,
        status,
        at=rfc3339(status.at),
        why=visible(status.why),
        next_attempt=rfc3339(status.next_attempt) if status.next_attempt > status.at else None,
        nodes=[
            answer_of(ComputeNode, each, since=rfc3339(each.since), words=visible(each.words)) for each in status.nodes
        ],
    )


DefinitionRoutes(
    path="/computes",
    noun="compute",
    name=Path(alias="compute", description="Name of a compute.", pattern=COMPUTE_NAME, examples=["cpu-cluster"]),
    models=(Compute, ComputeList),
    service=lambda context: context.computes,
    answer=lambda compute: _shown(compute, None),
    answer_now=_shown_now,
    texts=(
        "All computes, by name.",
        "Return one compute with its status: its nodes, what they wait for, and when its engine is asked again.",
        "Define a compute, durably, or define it anew; the provisioner sees that within seconds, and tries again "
        "at once what its engine had refused. Only the server's own token, and those that it names as operators, may "
        "(403).",
        "Forget a compute. One that a job runs on which has not ended, or on which a schedule makes jobs, can't "
        "be deleted (409). Who may is as for defining one.",
    ),
    removed="It is gone. Its nodes are drained and given back.",
    body=_BODY,
    is_for_operators=True,
    remove_problems=(403, 404, 409),
).add_to(router)
