"""The stacks of the workers of a running job are: asked for, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from parallelrun.http.transport import Transport
from parallelrun.resources.resource import as_model, job_path, pages
from parallelrun_core.answers.stacks import NodeStacks, StacksAsked

_POLL_S = 0.25


class Stacks(msgspec.Struct, kw_only=True, frozen=True):
    """The answers of a job's nodes."""

    nodes: list[NodeStacks]
    silent: list[str]
    """Nodes that have not answered in time."""


def ask_for_stacks(
    transport: Transport, job_id: str, *, node: str, process: str, timeout_s: float, sleep: Callable[[float], None]
) -> Stacks:
    """Ask the nodes that work for a job, and wait for what they answer."""
    wish = {"node": node, "process": process}
    path = job_path(job_id)
    answer = transport.request("POST", f"{path}:stacks", idempotent=True, body=lambda: {"json": wish})
    request = as_model(answer, StacksAsked)
    deadline = time.monotonic() + timeout_s
    while True:
        node_stacks = [each for each in pages(transport, f"{path}/stacks", NodeStacks) if each.id == request.id]
        silent = sorted(set(request.nodes) - {each.node for each in node_stacks})
        if not silent or time.monotonic() > deadline:
            return Stacks(nodes=node_stacks, silent=silent)
        sleep(_POLL_S)
