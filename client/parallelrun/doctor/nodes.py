"""The nodes of a cluster, by what their agents say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from parallelrun.doctor.finding import Check, Finding, Place, bad, ok, warn
from parallelrun.doctor.server import ANSWER_S

if TYPE_CHECKING:
    from parallelrun.models import Node

_CLOCK_S: Final = 2.0
_LEAST_BYTES: Final = 1 << 30


def agents(place: Place) -> Iterator[Finding]:
    """Every node of the cluster, if there is one."""
    if not place.url:
        return
    from parallelrun.client import Client
    from parallelrun.errors import ParallelRunError
    from parallelrun.transport import RetryPolicy

    try:
        with Client(place.url, place.token, timeout_s=ANSWER_S, retry=RetryPolicy(attempts=1)) as client:
            nodes = client.nodes.list()
    except ParallelRunError:
        return  # said by `server`
    if not any(node.is_alive for node in nodes):
        yield bad("no node is alive: jobs wait", "start an agent (parallelrun-agent), or see its log")
    for node in nodes:
        yield from _of(node)


def _of(node: Node) -> Iterator[Finding]:
    if not node.is_alive:
        yield warn(f"{node.node} is lost", "start its agent again; one that left for good is forgotten after a day")
        return
    said = f"{node.node} ({node.host}): {node.busy} of {node.slots} slots busy, version {node.version}"
    if node.memory_bytes:
        said += f", {node.memory_bytes >> 20:,} MiB of memory, {node.disk_free_bytes >> 20:,} MiB of disk free"
    yield ok(said)
    if node.state == "disk_full" or (node.memory_bytes and node.disk_free_bytes < _LEAST_BYTES):
        yield warn(f"{node.node} has little room on its disk", "make room there; it takes no work while there is none")
    if node.version != version("parallelrun"):
        yield warn(f"{node.node} has another version than this client", "use one version in a cluster")
    if abs(node.clock_ahead_s) > _CLOCK_S:
        yield warn(f"the clock of {node.node} is {node.clock_ahead_s:+.1f} s ahead of Redis'", "use NTP on all nodes")
    if not node.workers_apart:
        yield warn(
            f"on {node.node}, workers run as the agent's own user: submitters can read what it can",
            "let in only people whom you trust with it; for separation see SECURITY.md (nodes with worker users)",
        )


CHECKS: Final[tuple[Check, ...]] = (agents,)
