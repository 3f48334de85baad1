"""The operator's settings that all engines have whose nodes are of an image: which images, and what they mount."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, field_validator

from parallelrun_core.hosting.sources import read_variables
from parallelrun_provisioner.engines.interface import LaunchRefused
from parallelrun_provisioner.policy.images import is_allowed


class Mount(NamedTuple):
    """A volume, by its name or its claim, or a folder of the host, in a node."""

    source: str
    target: str
    is_read_only: bool

    @property
    def kind(self) -> str:
        """`bind` for a folder of the host, else `volume`."""
        return "bind" if self.source.startswith("/") else "volume"


class ImageSettings(BaseModel):
    """The images of nodes; lists have ',' between their entries."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)
    prefix: ClassVar[str]
    """The begin of the variables that say them."""
    mount_words: ClassVar[str]
    """An entry of `volumes`, for messages: what it is called, with examples."""

    image: str = "parallelrun-agent"
    """The image of nodes whose compute names none."""
    images: str = ""
    """Images that computes and jobs may name besides, as patterns such as `registry.example.org/team/*`: `*` stands for
    one part of a path, `**` for any number; without a host, they are Docker Hub's. Who makes an image that is a node
    can do there what its agent can: allow only those that you trust."""
    kit: str = ""
    redis_secret: str = ""
    volumes: str = ""

    @classmethod
    def from_environment(cls) -> Self:
        """Return what the operator has said. Raises ValueError: a value is wrong."""
        return cls.model_validate(read_variables(cls, cls.prefix))

    @field_validator("volumes")
    @classmethod
    def _are_mounts(cls, value: str) -> str:
        for entry in words(value):
            cls._mount(entry)
        return value

    @property
    def mounts(self) -> list[Mount]:
        return [self._mount(entry) for entry in words(self.volumes)]

    @classmethod
    def _mount(cls, text: str) -> Mount:
        """Read `SOURCE:TARGET` or `SOURCE:TARGET:ro`. Raises ValueError: it is neither."""
        source, target, mode = [*text.split(":"), "", ""][:3]
        if text.count(":") > 2 or not source or not target.startswith("/") or mode not in ("", "ro", "rw"):
            raise ValueError(f"{text!r} is no {cls.mount_words}")
        return Mount(source, target, mode == "ro")

    def allowed(self, image: str) -> str:
        """The image, or that of nodes whose compute names none. Raises LaunchRefused: nodes may not be of it."""
        image = image or self.image
        if image != self.image and not is_allowed(image, words(self.images)):
            raise LaunchRefused(
                f"the image {image!r} is not among those that nodes may have: the operator of the provisioner names "
                f"them in {self._variable('images')}"
            )
        return image

    def check_kit(self, job_image: str) -> None:
        """Raises LaunchRefused: a job has named an image, and the operator has no agent for nodes of other images."""
        if job_image and not self.kit:
            raise LaunchRefused(
                "jobs can't name images here: the operator of the provisioner names an image with the agent for them "
                f"in {self._variable('kit')}"
            )

    def check_secret(self, agent_secret: str, holder: str) -> None:
        """Raises LaunchRefused: agents need a password for Redis, and the operator has not said what holds it."""
        if agent_secret and not self.redis_secret:
            raise LaunchRefused(
                f"agents need a password for Redis: the operator of the provisioner names {holder} that has it in "
                f"{self._variable('redis_secret')}"
            )

    def _variable(self, field: str) -> str:
        return f"{self.prefix}{field}".upper()


def words(text: str) -> list[str]:
    """The entries of a list."""
    return [word.strip() for word in text.split(",") if word.strip()]
