"""The nodes of a cluster, by what their agents say of themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from parallelrun.doctor.server import client_of
from parallelrun_core.errors import InvalidInput
from parallelrun_core.wire.finding import Check, Finding, Level, Place, bad, ok, warn

if TYPE_CHECKING:
    from parallelrun.models import Node

_CLOCK_S: Final = 2.0
_LEAST_BYTES: Final = 1 << 30
_ANSWERS_S: Final = 4.0
"""An agent hears of it with its next heartbeat, and answers with the one after that."""
_ASK_AGAIN_S: Final = 0.2
_MOST_PATHS: Final = 32
_UNKNOWN: Final = 404


def agents(place: Place) -> Iterator[Finding]:
    """Every node of the cluster, if there is one."""
    if not place.url:
        return
    from parallelrun.errors import ParallelRunError

    try:
        with client_of(place) as client:
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
    message = f"{node.node} ({node.host}): {node.busy} of {node.slots} slots busy, version {node.version}"
    if node.memory_bytes:
        message += f", {node.memory_bytes >> 20:,} MiB of memory, {node.disk_free_bytes >> 20:,} MiB of disk free"
    yield ok(message)
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


def from_each(place: Place) -> Iterator[Finding]:
    """Return what each node finds out about itself, and whether it can read the inputs of the job."""
    if not place.url:
        return
    from parallelrun.errors import ParallelRunError

    try:
        with client_of(place) as client:
            check_id = client.nodes.check(_inputs(place))
            until = time.monotonic() + _ANSWERS_S
            while waited := [
                node for node in client.nodes.list() if node.is_alive and not _has_answered(node, check_id)
            ]:
                if time.monotonic() > until:
                    break
                time.sleep(_ASK_AGAIN_S)  # an agent says it with its next heartbeat
            answered = [node for node in client.nodes.list() if _has_answered(node, check_id)]
    except ParallelRunError as error:
        if getattr(error, "status", 0) != _UNKNOWN:  # all else was said by `server`
            return
        yield warn("this server can't ask its nodes to check themselves", "use one version in a cluster")
        return
    for node in answered:
        yield from _found_by(node)
    for node in waited:
        yield warn(f"{node.node} has not said how it is within {_ANSWERS_S:g} s", "see its log; is its version older?")


def _has_answered(node: Node, check_id: str) -> bool:
    return node.check is not None and node.check.id == check_id


def _found_by(node: Node) -> Iterator[Finding]:
    findings = node.check.findings if node.check is not None else []
    for each in findings:
        yield Finding(Level(each.level), f"on {node.node}: {each.what}", each.todo)
    if all(each.level == Level.OK for each in findings):
        yield ok(f"{node.node} finds nothing wrong with itself")


def _inputs(place: Place) -> list[str]:
    """The inputs of the job, if there is one that can be read."""
    if place.job_file is None:
        return []
    from parallelrun.job_file.reading import read_job_file

    with suppress(InvalidInput):
        return [job_input.path for _, job_input in read_job_file(place.job_file).job.input_paths()][:_MOST_PATHS]
    return []


CHECKS: Final[tuple[Check, ...]] = (agents, from_each)
