"""The manifest of the Pod that a node is. Pure; only fields that Kubernetes has had since 1.20.

A Pod has no right that it doesn't need: another user than root, no capability, a root file system that can't be
written, no token of the API. It is never restarted: a node that has ended is replaced by another one, if it is needed.
"""

from __future__ import annotations

import math
from typing import Any, Final

from parallelrun_core.computes.kinds.kubernetes import KubernetesCompute, Placement
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.image_settings import words
from parallelrun_provisioner.engines.interface import KIT, PROGRAM
from parallelrun_provisioner.engines.kubernetes.settings import KubernetesSettings

CLUSTER: Final = "parallelrun.io/cluster"
COMPUTE: Final = "parallelrun.io/compute"
"""The labels by which our Pods are known again."""
IMAGE: Final = "parallelrun.io/image"
"""The annotation with the image that a job has named for its nodes; a label can't have all of it."""
_CACHE: Final = "/cache"
_OWN: Final = "own"
_ALL: Final = "/volume"
"""Where the volume of the cache is as a whole, until the Pod is prepared."""
_KIT: Final = "kit"
_BROUGHT: Final = "/brought"
"""Where the agent for another image is copied to."""
_NO_RIGHTS: Final = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
# A busy node that is moved to save a machine costs more than the machine.
_STAYS: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def manifest(
    compute: KubernetesCompute, settings: KubernetesSettings, cluster: str, launch: Launch, owner_uid: str = ""
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
    volumes = _volumes(compute, settings, launch)
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
            "annotations": _STAYS | ({IMAGE: launch.shape.image} if launch.shape.image else {}),
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
            "initContainers": [_preparation(compute, settings, launch)],
            "containers": [_agent(compute, settings, launch, [mount for _, mount in volumes])],
            "volumes": [volume for volume, _ in volumes],
        },
    }


def image_of(compute: KubernetesCompute, settings: KubernetesSettings, launch: Launch) -> str:
    """The image of a node.

    Raises:
        LaunchRefused: the operator doesn't allow it, or has none with an agent for nodes of other images.
    """
    settings.check_kit(launch.shape.image)
    return settings.allowed(launch.shape.image or compute.image)


def _agent(
    compute: KubernetesCompute, settings: KubernetesSettings, launch: Launch, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    gpus = {compute.gpu_resource: str(compute.gpus)} if compute.gpus else {}
    return {
        "name": "agent",
        "image": image_of(compute, settings, launch),
        "imagePullPolicy": settings.image_pull_policy,
        "command": list(PROGRAM) if launch.shape.image else ["parallelrun-agent"],
        "workingDir": "/",
        "args": [escaped(word) for word in launch.arguments],
        "env": _environment(compute, settings, launch),
        **({"envFrom": [{"secretRef": {"name": settings.secrets}}]} if settings.secrets else {}),
        "resources": _resources(compute, gpus),
        "securityContext": _NO_RIGHTS,
        # The last lines of the log, where the agent has failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _preparation(compute: KubernetesCompute, settings: KubernetesSettings, launch: Launch) -> dict[str, Any]:
    """Return what runs before the agent: it makes a cache of its own, and copies the agent that another image lacks.

    An agent keeps environments only where nobody else can write, and a new volume is root's and open to all.
    """
    cache_folder = f"{_ALL}/{_OWN}"
    is_brought = bool(launch.shape.image)
    # Without -p, for owners and times: nobody but root may give files to others.
    both = ["sh", "-c", f"mkdir -p -m 0700 {cache_folder} && cp -R {KIT}/. {_BROUGHT}"]
    brought = [{"name": _KIT, "mountPath": _BROUGHT}] if is_brought else []
    return {
        "name": "preparation",
        "image": settings.kit if is_brought else image_of(compute, settings, launch),
        "imagePullPolicy": settings.image_pull_policy,
        "command": both if is_brought else ["mkdir", "-p", "-m", "0700", cache_folder],
        "workingDir": "/",
        "resources": _resources(compute, {}),
        "securityContext": _NO_RIGHTS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "cache", "mountPath": _ALL}, *brought],
    }


def _resources(compute: KubernetesCompute, gpus: dict[str, str]) -> dict[str, Any]:
    """Return what a container may use, which is reserved for it; of two that follow each other, a Pod reserves the
    larger."""
    limits = {
        **({"cpu": f"{compute.cpus:g}"} if compute.cpus else {}),
        **({"memory": str(compute.memory_bytes)} if compute.memory_bytes else {}),
        **gpus,
    }
    return {"requests": limits, "limits": limits} if limits else {}


def _environment(compute: KubernetesCompute, settings: KubernetesSettings, launch: Launch) -> list[dict[str, Any]]:
    slots = compute.slots_of_node
    plain = {
        **compute.environment_variables,
        **({"PARALLELRUN_SLOTS": str(slots)} if slots else {}),
        "PARALLELRUN_CACHE_DIR": _CACHE,
        "UV_CACHE_DIR": f"{_CACHE}/uv",
        "UV_PYTHON_INSTALL_DIR": f"{_CACHE}/pythons",
        **launch.environment,
        **({"PARALLELRUN_IMAGE": launch.shape.image} if launch.shape.image else {}),
    }
    variables: list[dict[str, Any]] = [{"name": name, "value": escaped(value)} for name, value in sorted(plain.items())]
    if settings.redis_secret:
        # No file: workers are the agent's user, who could read it; its environment, they can't.
        key = {"name": settings.redis_secret, "key": "agent"}
        variables.append({"name": "PARALLELRUN_REDIS_SECRET", "valueFrom": {"secretKeyRef": key}})
    return variables


def _volumes(
    compute: KubernetesCompute, settings: KubernetesSettings, launch: Launch
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    cache = {"persistentVolumeClaim": {"claimName": settings.cache}} if settings.cache else {"emptyDir": {}}
    volumes = [
        _volume("tmp", "/tmp", emptyDir={"sizeLimit": str(compute.tmp_bytes)}),  # noqa: S108 - of a container
        _volume("shm", "/dev/shm", emptyDir={"medium": "Memory", "sizeLimit": str(compute.shm_bytes)}),  # noqa: S108
        ({"name": "cache", **cache}, {"name": "cache", "mountPath": _CACHE, "subPath": _OWN}),
    ]
    if launch.shape.image:
        volume, mount = _volume(_KIT, KIT, emptyDir={})
        volumes.append((volume, {**mount, "readOnly": True}))
    for number, claim in enumerate(settings.mounts):
        volume, mount = _volume(f"claim-{number}", claim.target, persistentVolumeClaim={"claimName": claim.source})
        volumes.append((volume, {**mount, "readOnly": True} if claim.is_read_only else mount))
    return volumes


def _volume(name: str, target: str, **source: object) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"name": name, **source}, {"name": name, "mountPath": target}


def _owned(account: str, uid: str) -> dict[str, Any]:
    """Kubernetes ends what belongs to an object when that goes, as a release does with its accounts."""
    if not account:
        return {}
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "ServiceAccount", "name": account, "uid": uid}]}


def _placed(placement: Placement) -> dict[str, Any]:
    tolerations = [each.model_dump(exclude_defaults=True) for each in placement.tolerations]
    fields = {
        "nodeSelector": placement.node_selector,
        "tolerations": tolerations,
        "priorityClassName": placement.priority_class,
    }
    return {name: value for name, value in fields.items() if value}


def _named(field: str, names: list[str]) -> dict[str, Any]:
    return {field: [{"name": name} for name in names]} if names else {}


def escaped(text: str) -> str:
    """The text where Kubernetes would put the value of a variable for `$(NAME)`."""
    return text.replace("$(", "$$(")
