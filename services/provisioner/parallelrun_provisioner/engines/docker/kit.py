"""The volume with the agent for nodes of other images: filled once, by the Engine, from an image of ours.

An Engine fills an empty volume with what an image has at the path where it is mounted, when it creates a container.
That container is never started. It stays as the mark that the volume is complete, and of which image.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from parallelrun_core.service.telemetry import logger
from parallelrun_provisioner.engines.docker.node import kit_volume
from parallelrun_provisioner.engines.interface import KIT

log = logger()


def fill(client: Any, kit: str) -> None:
    """Make sure that the volume has what this image has. One that nodes still use stays as it is until they end.

    Raises:
        ImageNotFound, APIError: of the library: the Engine has no such image, or can't fill the volume.
    """
    from docker.errors import APIError, NotFound

    name = kit_volume(kit)
    image = client.inspect_image(kit)["Id"]
    with suppress(NotFound):
        if client.inspect_container(name)["Image"] == image:
            return
        client.remove_container(name, force=True)
    try:
        client.remove_volume(name)
    except NotFound:
        pass
    except APIError as error:
        if error.status_code != 409:
            raise
        log.warning("kit_in_use", volume=name)
        return
    body = {"Image": image, "Cmd": ["true"], "HostConfig": {"Mounts": [_mount(name)]}}
    client.create_container_from_config(body, name=name)
    log.info("kit_filled", volume=name, image=image)


def _mount(name: str) -> dict[str, Any]:
    return {"Type": "volume", "Source": name, "Target": KIT}
