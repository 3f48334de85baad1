"""Computes: shown, defined and deleted; their nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response

from parallelrun_api.azure.answers import FacadeRoute, NotSupported, answer, resource
from parallelrun_api.azure.bodies import read_body
from parallelrun_api.azure.documents import seconds_of
from parallelrun_api.azure.facade import READS, WORKSPACE, Facade, FacadeOf, scope_of
from parallelrun_api.azure.workspace import PROVIDED

router = APIRouter(include_in_schema=False, route_class=FacadeRoute)


@router.get(WORKSPACE + "/computes")
def list_computes(request: Request, facade: FacadeOf) -> Response:
    """Return the computes that are defined; while there are none, the nodes as one compute: a client that names another
    one gets the same."""
    return answer({"value": _computes(facade, request)})


@router.get(WORKSPACE + "/computes/{name}")
def get_compute(name: str, request: Request, facade: FacadeOf) -> Response:
    """Return one of them; while there are none, the nodes, by whatever name."""
    return answer(_compute(facade, request, name))


@router.put(WORKSPACE + "/computes/{name}")
async def put_compute(name: str, request: Request, facade: FacadeOf) -> Response:
    """Define a compute, or define it anew with what a client says of it."""
    document = await read_body(request)
    await run_sync(_define, facade, request, name, document)
    return answer(await run_sync(_compute, facade, request, name))


@router.delete(WORKSPACE + "/computes/{name}", name="delete_compute")
def delete_compute(name: str, request: Request, facade: FacadeOf) -> Response:
    facade.context.operators.check(request.state.token_name)
    facade.context.computes.remove(name)
    return Response(status_code=200)


@router.post(WORKSPACE + "/computes/{name}/listNodes", name="list_compute_nodes", tags=[READS])
def list_compute_nodes(name: str, request: Request, facade: FacadeOf) -> Response:
    _compute(facade, request, name)
    is_defined = bool(facade.context.computes.all())
    alive = [node for node, is_alive in facade.context.nodes.all() if is_alive]
    of_it = [node for node in alive if not is_defined or node.compute == name]
    return answer({"nodes": [_node(node.node, is_busy=bool(node.busy)) for node in of_it]})


def _node(name: str, *, is_busy: bool) -> dict[str, Any]:
    state = "running" if is_busy else "idle"
    # Later releases read the names that earlier ones have in Python.
    return {"nodeId": name, "node_id": name, "nodeState": state, "node_state": state}


@router.get(PROVIDED + "/locations/{location}/{kind}", name="list_of_location")
async def list_of_location(kind: str) -> Response:
    """Nothing: machines have no quota here, and computes no sizes of Azure's."""
    if kind not in ("usages", "vmSizes"):
        raise NotSupported(f"ParallelRun has no {kind[:60]!r}; docs/azure-client.md says what it has.")
    return answer({"value": []})


def _define(facade: Facade, request: Request, name: str, document: object) -> None:
    """Define a compute with what the client has sent, if that changes anything: of type `local` if the provisioner
    starts such nodes, else of the kind that it starts first. Where there is none, and no compute is defined, its name
    stands for the nodes that there are.
    """
    computes = facade.context.computes
    defined = {compute.name: compute for compute in computes.all()}
    kinds = computes.kinds()
    if not defined and not kinds:
        return
    fields, compute = _fields(document), defined.get(name)
    if compute is not None and all(getattr(compute, key) == value for key, value in fields.items()):
        return
    facade.context.operators.check(request.state.token_name)
    earlier = compute.model_dump(mode="json", exclude_defaults=True) if compute is not None else {}
    computes.put(name, {"type": "local" if "local" in kinds else "amlcompute", **earlier, **fields})


def _fields(document: object) -> dict[str, Any]:
    """The fields of a definition that a client has sent."""
    outer = document.get("properties") if isinstance(document, dict) else None
    inner = outer.get("properties") if isinstance(outer, dict) else None
    sent: dict[str, Any] = inner if isinstance(inner, dict) else {}
    raw_scale = sent.get("scaleSettings")
    scale: dict[str, Any] = raw_scale if isinstance(raw_scale, dict) else {}
    idle, priority = scale.get("nodeIdleTimeBeforeScaleDown"), sent.get("vmPriority")
    fields = {
        "description": outer.get("description") if isinstance(outer, dict) else None,
        "size": sent.get("vmSize"),
        "tier": {"dedicated": "dedicated", "lowpriority": "low_priority"}.get(str(priority).lower()),
        "min_instances": scale.get("minNodeCount"),
        "max_instances": scale.get("maxNodeCount"),
        "idle_time_before_scale_down": seconds_of(idle) if idle else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _computes(facade: Facade, request: Request) -> list[dict[str, Any]]:
    names = [compute.name for compute in facade.context.computes.all()]
    return [_compute(facade, request, name) for name in names or ["local"]]


def _compute(facade: Facade, request: Request, name: str) -> dict[str, Any]:
    if facade.context.computes.all():
        return _defined_compute(facade, request, name)
    alive = sum(is_alive for _, is_alive in facade.context.nodes.all())
    description = "the nodes of this cluster, which are started and stopped by themselves"
    return _as_azure_has_it(request, name, _Scale(least=alive, most=alive, current=alive, target=alive), description)


def _defined_compute(facade: Facade, request: Request, name: str) -> dict[str, Any]:
    """A compute of the catalog. Raises NotFound."""
    compute, status = facade.context.computes.get(name), facade.context.computes.status(name)
    scale = _Scale(
        least=compute.min_instances,
        most=compute.max_instances,
        current=status.ready if status else 0,
        target=status.wanted if status else 0,
        idle_s=compute.idle_time_before_scale_down,
        size=compute.size or "LOCAL",
        priority="LowPriority" if compute.tier == "low_priority" else "Dedicated",
    )
    return _as_azure_has_it(request, name, scale, compute.description)


class _Scale(NamedTuple):
    least: int
    most: int
    current: int
    target: int
    idle_s: float = 120
    size: str = "LOCAL"
    priority: str = "Dedicated"


def _as_azure_has_it(request: Request, name: str, scale: _Scale, description: str) -> dict[str, Any]:
    properties = {
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
            "allocationState": "Steady" if scale.current == scale.target else "Resizing",
            "currentNodeCount": scale.current,
            "targetNodeCount": scale.target,
        },
    }
    return resource(scope_of(request), {"computes": name}, properties, location="local", tags={})
