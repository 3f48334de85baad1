"""Pods as engine nodes: translates the API's list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_provisioner.engines.interface import EngineNode, NodeStanding
from parallelrun_provisioner.engines.kubernetes.pod import IMAGE

_STANDING: Final = {
    "Pending": NodeStanding.PENDING,
    "Running": NodeStanding.RUNNING,
    "Succeeded": NodeStanding.ENDED,
    "Failed": NodeStanding.ENDED,
    "Unknown": NodeStanding.RUNNING,  # its machine doesn't answer: the node may go on working
}
_TAKEN: Final = frozenset({"Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
"""The reasons in a Pod's status when the cluster has ended it, as kubelet, scheduler and controllers write them since
Kubernetes 1.20."""
_MOST: Final = 500


def node_of(pod: Mapping[str, Any]) -> EngineNode:
    status = pod.get("status", {})
    standing = _STANDING.get(status.get("phase", "Pending"), NodeStanding.RUNNING)
    ended = _of_container(status, "terminated") if standing is NodeStanding.ENDED else {}
    return EngineNode(
        launch_id=pod["metadata"]["name"],
        standing=standing,
        image=(pod["metadata"].get("annotations") or {}).get(IMAGE, ""),
        words=in_one_line(_words(status, standing, ended))[:_MOST],
        exit_code=ended.get("exitCode"),
        ends_at=None,
        was_preempted=standing is NodeStanding.ENDED and _was_taken(status),
    )


def _words(status: Mapping[str, Any], standing: NodeStanding, ended: Mapping[str, Any]) -> str:
    if standing is NodeStanding.ENDED:
        pod_words = _joined(status.get("reason"), status.get("message"))
        if ended.get("exitCode") == 0 and not pod_words:
            return ""
        code = f"exit code {ended['exitCode']}" if "exitCode" in ended else ""
        return "; ".join(
            filter(None, (pod_words, _joined(ended.get("reason"), code, _last_line(ended.get("message")))))
        )
    if standing is NodeStanding.PENDING:
        waiting = _of_container(status, "waiting")
        return _joined(waiting.get("reason"), waiting.get("message")) or _unmet(status.get("conditions") or ())
    return _joined(status.get("reason"), status.get("message"))


def _last_line(message: str | None) -> str:
    """Return the last line of a failed container's log, which is its termination message."""
    return next(iter((message or "").strip().splitlines()[::-1]), "")


def _unmet(conditions: Iterable[Mapping[str, Any]]) -> str:
    """Why it isn't on any machine yet."""
    for condition in conditions:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _joined(condition.get("reason"), condition.get("message"))
    return ""


def _of_container(status: Mapping[str, Any], state: str) -> Mapping[str, Any]:
    """Return what the Pod says of this state of its current container; empty: the container isn't in this state.

    The current one is the first init container that has not succeeded, or, when all have, the first other container.
    """
    init = [each for each in status.get("initContainerStatuses") or () if not _is_done(each)]
    containers = [*init, *(status.get("containerStatuses") or ())]
    fields: Mapping[str, Any] = containers[0].get("state", {}).get(state) if containers else {}
    return fields or {}


def _is_done(container: Mapping[str, Any]) -> bool:
    """Return whether it has ended as it should."""
    ended: Mapping[str, Any] = container.get("state", {}).get("terminated") or {}
    return ended.get("exitCode") == 0


def _was_taken(status: Mapping[str, Any]) -> bool:
    """Return whether the cluster wanted its end."""
    disrupted = any(
        each.get("type") == "DisruptionTarget" and each.get("status") == "True"
        for each in status.get("conditions") or ()
    )
    return disrupted or status.get("reason") in _TAKEN


def _joined(*words: object) -> str:
    return ": ".join(str(word) for word in words if word)
