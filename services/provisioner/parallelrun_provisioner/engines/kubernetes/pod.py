"""The manifest of the Pod that a node is. Pure; only fields that Kubernetes has had since 1.20.

A Pod has no right that it doesn't need: another user than root, no capability, a root file system that can't be
written, no token of the API. It is never restarted: a node that has ended is replaced by another one, if it is needed.
"""

from __future__ import annotations

import math
from typing import Any, Final

from parallelrun_core.computes.kinds.kubernetes import Compute, Placement
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.interface import LaunchRefused
from parallelrun_provisioner.engines.kubernetes.settings import KubernetesSettings, words

CLUSTER: Final = "parallelrun.io/cluster"
COMPUTE: Final = "parallelrun.io/compute"
"""The labels by which our Pods are known again."""
_CACHE: Final = "/cache"
_OWN: Final = "own"
_NO_RIGHTS: Final = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
# A busy node that is moved to save a machine costs more than the machine.
_STAYS: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def manifest(
    compute: Compute, settings: KubernetesSettings, cluster: str, launch: Launch, owner_uid: str = ""
) -> dict[str, Any]:
    """The body of `POST …/pods`.

    Args:
        owner_uid: what Kubernetes knows the nodes' service account by.

    Raises:
        LaunchRefused: the operator doesn't allow such a node.
    """
    placement = compute.placement
    if compute.tier == "low_priority" and compute.low_priority is not None:
        placement = compute.low_priority
    uid, gid = map(int, settings.user.split(":"))
    volumes = _volumes(compute, settings)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": launch.id,
            "labels": {
                "app.kubernetes.io/name": "parallelrun",
                "app.kubernetes.io/component": "agent",
                CLUSTER: cluster,
                COMPUTE: compute.name,
            },
            "annotations": _STAYS,
            **_owned(settings.service_account, owner_uid),
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": math.ceil(compute.stop_seconds),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **({"serviceAccountName": settings.service_account} if settings.service_account else {}),
            "securityContext": {
                "runAsNonRoot": uid != 0,
                "runAsUser": uid,
                "runAsGroup": gid,
                "fsGroup": gid,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **_placed(placement),
            **_named("imagePullSecrets", words(settings.pull_secrets)),
            "initContainers": [_cache_maker(compute, settings, launch)],
            "containers": [_agent(compute, settings, launch, [mount for _, mount in volumes])],
            "volumes": [volume for volume, _ in volumes],
        },
    }


def image_of(compute: Compute, settings: KubernetesSettings, launch: Launch) -> str:
    """The image of a node.

    Raises:
        LaunchRefused: the operator doesn't allow it, or it is the job's.
    """
    image = compute.image or settings.image
    if launch.shape.image:
        raise LaunchRefused(
            f"a job can't bring its image {launch.shape.image!r} to a compute of type kubernetes: make one with the "
            "agent in it, and name it as the image of a compute"
        )
    if not settings.allows(image):
        raise LaunchRefused(
            f"the image {image!r} is not among those that nodes may have: the operator of the provisioner names them "
            "in PARALLELRUN_KUBERNETES_IMAGES"
        )
    return image


def _agent(
    compute: Compute, settings: KubernetesSettings, launch: Launch, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    limits = {
        "cpu": f"{compute.cpus:g}" if compute.cpus else "",
        "memory": str(compute.memory_bytes) if compute.memory_bytes else "",
        compute.gpu_resource: str(compute.gpus) if compute.gpus else "",
    }
    limits = {name: value for name, value in limits.items() if value}
    return {
        "name": "agent",
        "image": image_of(compute, settings, launch),
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["parallelrun-agent"],
        "args": [escaped(word) for word in launch.arguments],
        "env": _environment(compute, settings, launch),
        **({"envFrom": [{"secretRef": {"name": settings.secrets}}]} if settings.secrets else {}),
        "resources": {"requests": limits, "limits": limits} if limits else {},
        "securityContext": _NO_RIGHTS,
        # The last lines of the log, where the agent has failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _cache_maker(compute: Compute, settings: KubernetesSettings, launch: Launch) -> dict[str, Any]:
    """An agent keeps environments only where nobody else can write, and a new volume is root's and open to all."""
    return {
        "name": "cache",
        "image": image_of(compute, settings, launch),
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["mkdir", "-m", "0700", f"/volume/{_OWN}"],
        "securityContext": _NO_RIGHTS,
        "volumeMounts": [{"name": "cache", "mountPath": "/volume"}],
    }


def _environment(compute: Compute, settings: KubernetesSettings, launch: Launch) -> list[dict[str, Any]]:
    slots = compute.slots_of_node
    plain = {
        **compute.environment_variables,
        **({"PARALLELRUN_SLOTS": str(slots)} if slots else {}),
        "PARALLELRUN_CACHE_DIR": _CACHE,
        "UV_CACHE_DIR": f"{_CACHE}/uv",
        "UV_PYTHON_INSTALL_DIR": f"{_CACHE}/pythons",
        **launch.environment,
    }
    variables: list[dict[str, Any]] = [{"name": name, "value": escaped(value)} for name, value in sorted(plain.items())]
    if settings.redis_secret:
        # No file: workers are the agent's user, who could read it; its environment, they can't.
        key = {"name": settings.redis_secret, "key": "agent"}
        variables.append({"name": "PARALLELRUN_REDIS_SECRET", "valueFrom": {"secretKeyRef": key}})
    return variables


def _volumes(compute: Compute, settings: KubernetesSettings) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each volume, and where it is mounted."""
    made = [
        _volume("tmp", "/tmp", emptyDir={"sizeLimit": str(compute.tmp_bytes)}),  # noqa: S108 - of a container
        _volume("shm", "/dev/shm", emptyDir={"medium": "Memory", "sizeLimit": str(compute.shm_bytes)}),  # noqa: S108
        ({"name": "cache", "emptyDir": {}}, {"name": "cache", "mountPath": _CACHE, "subPath": _OWN}),
    ]
    for number, claim in enumerate(settings.claims):
        volume, mount = _volume(f"claim-{number}", claim.target, persistentVolumeClaim={"claimName": claim.name})
        made.append((volume, {**mount, "readOnly": True} if claim.is_read_only else mount))
    return made


def _volume(name: str, target: str, **source: object) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"name": name, **source}, {"name": name, "mountPath": target}


def _owned(account: str, uid: str) -> dict[str, Any]:
    """Kubernetes ends what belongs to an object when that goes, as a release does with its accounts."""
    if not account:
        return {}
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "ServiceAccount", "name": account, "uid": uid}]}


def _placed(placement: Placement) -> dict[str, Any]:
    tolerations = [each.model_dump(exclude_defaults=True) for each in placement.tolerations]
    given = {
        "nodeSelector": placement.node_selector,
        "tolerations": tolerations,
        "priorityClassName": placement.priority_class,
    }
    return {name: value for name, value in given.items() if value}


def _named(field: str, names: list[str]) -> dict[str, Any]:
    return {field: [{"name": name} for name in names]} if names else {}


def escaped(text: str) -> str:
    """The text where Kubernetes would put the value of a variable for `$(NAME)`."""
    return text.replace("$(", "$$(")
