"""The container that a node is, as the Engine's API has it: what is limited, and what it may not do.

It may do no more than the agents of docker-compose.yml: a test compares the two.
"""

from __future__ import annotations

from typing import Any, Final

from parallelrun_core.computes.containers import Containers
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
from parallelrun_provisioner.engines.image_settings import Mount, words

_SECRET: Final = "/secret"  # noqa: S105 - where it is, not what it is
_LEAST_MEMORY_BYTES: Final = 6 << 20
"""Docker refuses containers with less memory."""
_LOG: Final = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}


def container(
    compute: Containers, settings: DockerSettings, cluster: str, launch: Launch, built: str = ""
) -> dict[str, Any]:
    """The body of `POST /containers/create`.

    Args:
        built: as in `image_of`.

    Raises:
        LaunchRefused: the operator doesn't allow its image.
    """
    networks = words(settings.networks)
    secret = [Mount(settings.redis_secret, _SECRET, True)] if settings.redis_secret else []
    return {
        "Image": image_of(compute, settings, launch, built),
        "Entrypoint": program(launch),
        "Cmd": list(launch.arguments),
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "Env": pairs(environment(compute, settings, launch, f"{_SECRET}/secret")),
        "Labels": labels(cluster, launch),
        "User": "0:0",
        "StopSignal": "SIGTERM",
        "StopTimeout": round(compute.stop_seconds),
        "HostConfig": {
            "NetworkMode": networks[0] if networks else "default",
            "Init": True,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": ["no-new-privileges:true"],
            "RestartPolicy": {"Name": "no"},
            "PidsLimit": compute.pids,
            "Tmpfs": {"/tmp": f"size={compute.tmp_bytes},mode=1777,exec"},  # noqa: S108 - of the container
            "ShmSize": compute.shm_bytes,
            "Mounts": mounts([*seen(settings, launch), *secret]),
            "LogConfig": _LOG,
            **_limits(compute),
        },
    }


def _limits(compute: Containers) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if compute.cpus:
        limits["NanoCpus"] = round(compute.cpus * 1e9)
    if compute.memory_bytes:
        limits["Memory"] = limits["MemorySwap"] = max(compute.memory_bytes, _LEAST_MEMORY_BYTES)
    if compute.gpus:
        limits["DeviceRequests"] = [{"Driver": "", "Count": compute.gpus, "Capabilities": [["gpu"]]}]
    return limits
