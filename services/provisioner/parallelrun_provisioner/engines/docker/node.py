"""A node of Docker, as a container or a service of a swarm: its labels, image, variables, mounts and program."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from parallelrun_core.computes.containers import Containers
from parallelrun_core.computes.launch import Launch
from parallelrun_core.names.computes import built_image_of
from parallelrun_provisioner.engines.docker.settings import DockerSettings
from parallelrun_provisioner.engines.image_settings import Mount
from parallelrun_provisioner.engines.interface import KIT, PROGRAM, LaunchRefused

CLUSTER: Final = "parallelrun.cluster"
COMPUTE: Final = "parallelrun.compute"
LAUNCH: Final = "parallelrun.launch"
IMAGE: Final = "parallelrun.image"
"""The labels by which our objects are known again."""
CAPABILITIES: Final = ("KILL", "SETGID", "SETUID")
"""What an agent needs to start and end workers as other users; it gives up the rest of root's rights at once."""
CACHE: Final = "/cache"
_CACHE: Final = {
    "PARALLELRUN_CACHE_DIR": CACHE,
    "UV_CACHE_DIR": f"{CACHE}/uv",
    "UV_PYTHON_INSTALL_DIR": f"{CACHE}/pythons",
}
_OWN_CACHE: Final = {"UV_CACHE_DIR": "/tmp/uv", "UV_PYTHON_INSTALL_DIR": "/tmp/pythons"}  # noqa: S108 - of the container
"""The caches of a node that shares none: in /tmp, as its root file system, with the home of its user, is read-only."""
_OWN_PROGRAM: Final = ["parallelrun-agent"]


def labels(cluster: str, launch: Launch) -> dict[str, str]:
    """Return what marks an object as this node of this cluster, and says what it is of, if a job has named that."""
    image = {IMAGE: launch.shape.image} if launch.shape.image else {}
    return {CLUSTER: cluster, COMPUTE: launch.compute, LAUNCH: launch.id, **image}


def image_of(compute: Containers, settings: DockerSettings, launch: Launch, built: str = "") -> str:
    """The image of a node.

    Args:
        built: what the engine calls the image that was built for it; empty: it has none.

    Raises:
        LaunchRefused: the operator doesn't allow it, or has none with an agent for nodes of other images; or it was to
            be built, and is not there.
    """
    settings.check_kit(launch.shape.image)
    if built_image_of(launch.shape.image):
        if not built:
            raise LaunchRefused("its image is not built")
        return built
    return settings.allowed(launch.shape.image or compute.image)


def environment(compute: Containers, settings: DockerSettings, launch: Launch, secret: str) -> dict[str, str]:
    """The variables of a node, in which the password for Redis is in the file `secret`.

    Of two with one name, the later one counts. So the definition of a compute can't replace what the provisioner says
    of a launch, and neither of them what the operator has set.
    """
    slots = compute.slots_of_node
    return {
        **compute.environment_variables,
        **({"PARALLELRUN_SLOTS": str(slots)} if slots else {}),
        **launch.environment,
        **({"PARALLELRUN_RUN_AS": settings.user} if settings.user else {}),
        **({"PARALLELRUN_WORKER_UIDS": settings.worker_uids} if settings.worker_uids else {}),
        **({"PARALLELRUN_REDIS_SECRET_FILE": secret} if settings.redis_secret else {}),
        **({"PARALLELRUN_IMAGE": launch.shape.image} if launch.shape.image else {}),
        **({"PARALLELRUN_SECRETS_DIR": settings.secrets_dir} if settings.secrets_dir else {}),
        **(_CACHE if settings.cache else _OWN_CACHE),
    }


def pairs(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(variables.items())]


def mounts(volumes: list[Mount]) -> list[dict[str, Any]]:
    return [
        {"Type": each.kind, "Source": each.source, "Target": each.target, "ReadOnly": each.is_read_only}
        | ({"VolumeOptions": {"NoCopy": True}} if each.target == KIT and each.kind == "volume" else {})
        for each in volumes
    ]


def program(launch: Launch) -> list[str]:
    """Return what runs in a node: the agent of our image, or, in an image that a job has named, the mounted one."""
    return list(PROGRAM) if launch.shape.image else _OWN_PROGRAM


def seen(settings: DockerSettings, launch: Launch) -> list[Mount]:
    """Return what a node sees beside what its secret is in."""
    cache = [Mount(settings.cache, CACHE, False)] if settings.cache else []
    source = settings.kit if settings.is_kit_a_folder else kit_volume(settings.kit)
    kit = [Mount(source, KIT, True)] if launch.shape.image else []
    return [*settings.mounts, *cache, *kit]


def kit_volume(kit: str) -> str:
    """Return the name of the volume with the agent for images that jobs have named (`kit.py` fills it)."""
    return f"parallelrun-kit-{sha256(kit.encode()).hexdigest()[:12]}"
