"""The service that a node is, as the Engine's API has it: one task, which is never started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from parallelrun_core.computes.kinds.swarm import SwarmCompute
from parallelrun_core.computes.launch import Launch
from parallelrun_provisioner.engines.docker.node import (
    CAPABILITIES,
    environment,
    image_of,
    labels,
    mounts,
    pairs,
    program,
    seen,
)
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.image_settings import words
from parallelrun_provisioner.engines.interface import KIT, LaunchRefused

# Where a swarm puts secrets: the folder of that name in our image is closed to an agent that stays root.
_SECRET: Final = "/run/secrets/redis"  # noqa: S105 - where it is, not what it is
_STACK: Final = "com.docker.stack.namespace"
"""By which `docker stack rm` knows what to remove."""
_SECOND_NS: Final = 10**9
_OWNER_READS: Final = 0o400
_EVERYBODY: Final = 0o1777


def service(
    compute: SwarmCompute, settings: DockerSettings, cluster: str, launch: Launch, secret_id: str = ""
) -> dict[str, Any]:
    """The body of `POST /services/create`.

    Args:
        secret_id: the swarm's own id of the secret with the password for Redis.

    Raises:
        LaunchRefused: the operator doesn't allow its image, or has no agent on all machines for those of jobs.
    """
    if launch.shape.image and settings.kit and not settings.is_kit_a_folder:
        raise LaunchRefused(
            "jobs can't name images here: in a swarm, PARALLELRUN_DOCKER_KIT is a folder of all machines, not the "
            f"image {settings.kit!r}, with what that has in {KIT}"
        )
    return {
        "Name": launch.id,
        "Labels": labels(cluster, launch) | ({_STACK: settings.stack} if settings.stack else {}),
        "TaskTemplate": {
            "ContainerSpec": _container(compute, settings, cluster, launch, secret_id),
            "Resources": _resources(compute),
            "RestartPolicy": {"Condition": "none"},
            "Placement": {"Constraints": list(compute.constraints)},
            "Networks": [{"Target": name} for name in words(settings.networks)],
        },
        "Mode": {"Replicated": {"Replicas": 1}},
        # Nobody connects to a node: no address for the service beside that of its container.
        "EndpointSpec": {"Mode": "dnsrr"},
    }


def _container(
    compute: SwarmCompute, settings: DockerSettings, cluster: str, launch: Launch, secret_id: str
) -> dict[str, Any]:
    return {
        "Image": image_of(compute, settings, launch),
        "Command": program(launch),
        "Args": list(launch.arguments),
        "Dir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "Env": pairs(environment(compute, settings, launch, _SECRET)),
        "Labels": labels(cluster, launch),
        "User": "0:0",
        "Init": True,
        "ReadOnly": True,
        "CapabilityDrop": ["ALL"],
        "CapabilityAdd": [f"CAP_{name}" for name in CAPABILITIES],
        # Engines before 25 know neither this nor options of a tmpfs, and pass over both.
        "Privileges": {"NoNewPrivileges": True},
        "StopSignal": "SIGTERM",
        "StopGracePeriod": round(compute.stop_seconds * _SECOND_NS),
        "Mounts": [
            *mounts(seen(settings, launch)),
            _memory("/tmp", compute.tmp_bytes),  # noqa: S108 - of the container
            _memory("/dev/shm", compute.shm_bytes),  # noqa: S108 - of the container
        ],
        **({"Secrets": [_secret(settings, secret_id)]} if settings.redis_secret else {}),
    }


def _memory(target: str, size_bytes: int) -> dict[str, Any]:
    options = {"SizeBytes": size_bytes, "Mode": _EVERYBODY, "Options": [["exec"]]}
    return {"Type": "tmpfs", "Target": target, "TmpfsOptions": options}


def _secret(settings: DockerSettings, secret_id: str) -> dict[str, Any]:
    uid, _, gid = (settings.user or "0:0").partition(":")
    file = {"Name": Path(_SECRET).name, "UID": uid, "GID": gid, "Mode": _OWNER_READS}
    return {"SecretID": secret_id, "SecretName": settings.redis_secret, "File": file}


def _resources(compute: SwarmCompute) -> dict[str, Any]:
    """Return what a node may use, which is reserved for it, so that no machine gets more nodes than it has room for."""
    most: dict[str, Any] = {}
    if compute.cpus:
        most["NanoCPUs"] = round(compute.cpus * 1e9)
    if compute.memory_bytes:
        most["MemoryBytes"] = compute.memory_bytes
    reserved = dict(most)
    if compute.gpus:
        gpus = {"Kind": compute.gpu_resource, "Value": compute.gpus}
        reserved["GenericResources"] = [{"DiscreteResourceSpec": gpus}]
    return {"Limits": {**most, "Pids": compute.pids}, "Reservations": reserved}
