"""The fields of nodes that are containers on every engine of Docker: one by one, and as services of a swarm.

What a container may reach of its host (networks, volumes, the secret with which its agent logs in to Redis) is not
here: whoever may define a compute could otherwise mount the host. The provisioner's own settings name it.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from parallelrun_core.computes import definition

_IMAGE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/:@-]{0,510}[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OURS: Final = ("PARALLELRUN_", "LD_")


def checked_image(value: str) -> str:
    """The reference of an image, such as `registry.example.org/team/image:tag`; empty stays empty.

    Raises:
        ValueError: it isn't one.
    """
    if value and not _IMAGE.fullmatch(value):
        raise ValueError("an image is named as in registry.example.org/team/image:tag")
    return value


def _checked_variables(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name) or name.startswith(_OURS) or "\0" in text:
            raise ValueError(f"environment_variables: {name!r} can't be set for a node")
    return value


class Containers(definition.Compute):
    """A compute whose nodes are containers."""

    image: Annotated[str, AfterValidator(checked_image)] = Field(
        default="", json_schema_extra={"pattern": f"^({_IMAGE.pattern})?$"}
    )
    """The image of its nodes, with an agent in it; that of the provisioner's settings when not set."""
    registry: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62})?$")
    """The name under which the provisioner finds user and password of the images' registry."""
    environment_variables: Annotated[dict[str, str], AfterValidator(_checked_variables)] = Field(
        default_factory=dict,
        json_schema_extra={
            "propertyNames": {"pattern": f"^(?!{'|'.join(_OURS)}){_VARIABLE.pattern}$"},
            "additionalProperties": {"type": "string", "pattern": "^[^\\x00]*$"},
        },
    )
    """Additional ones for nodes and workers. Everybody who may ask the engine can read them: no secrets."""
    tmp_bytes: int = Field(default=2 << 30, ge=16 << 20)
    """Size of /tmp, which is in memory: working folders, inputs of mode download."""
    shm_bytes: int = Field(default=1 << 30, ge=1 << 20)
    """Size of /dev/shm."""
    pids: int = Field(default=4096, ge=64, le=1 << 22)
    """Processes and threads that a node may have."""
    stop_seconds: float = Field(default=60, ge=1, le=86_400)
    """Seconds that a node that was told to stop may finish or return its mini-batches, before it is killed."""

    @property
    def slots_of_node(self) -> int | None:
        """Its slots; as many as it may use CPUs when those are limited, because its container sees all of its host."""
        if self.slots is None and self.cpus is not None:
            return max(1, int(self.cpus))
        return self.slots
