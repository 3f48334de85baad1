"""The operator's settings for nodes that are Pods: what of their cluster they may have. Never part of a compute."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from parallelrun_provisioner.policy.images import is_allowed


class VolumeClaim(NamedTuple):
    """A volume, by its claim, in a node."""

    name: str
    target: str
    is_read_only: bool

    @classmethod
    def parse(cls, text: str) -> VolumeClaim:
        """Parse `CLAIM:TARGET`, or `CLAIM:TARGET:ro`.

        Raises:
            ValueError: it is neither.
        """
        name, target, mode = [*text.split(":"), "", ""][:3]
        if text.count(":") > 2 or not name or not target.startswith("/") or mode not in ("", "ro", "rw"):
            raise ValueError(f"{text!r} is no claim, such as parallelrun-data:/data or inputs:/inputs:ro")
        return cls(name, target, mode == "ro")


class KubernetesSettings(BaseSettings):
    """Settings of the provisioner for the engine `kubernetes`; lists have ',' between their entries."""

    model_config = SettingsConfigDict(
        env_prefix="PARALLELRUN_KUBERNETES_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    kubeconfig: Path | None = None
    """File that says where the API is; the service account that is mounted into the provisioner's Pod when not set."""
    namespace: str = ""
    """Namespace of the nodes; that of the service account, or of the file's context, when not set."""
    image: str = "parallelrun-agent"
    """The image of nodes whose compute names none."""
    images: str = ""
    """Images that computes and jobs may name besides, as patterns such as `registry.example.org/team/*`: `*` stands for
    one part of a path, `**` for any number; without a host, they are Docker Hub's. Who makes an image that is a node
    can do there what its agent can: allow only those that you trust."""
    kit: str = ""
    """The image with the agent for nodes of other images, from which each such Pod copies it. Empty: jobs can't name
    images."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: str = ""
    """Secrets with the logins of the images' registries."""
    volumes: str = ""
    """The claims that nodes mount, such as `parallelrun-data:/data,inputs:/inputs:ro`; at least the root folder."""
    cache: str = ""
    """The claim, ReadWriteMany, in which nodes keep what they have built and fetched, for all of them. Empty: each has
    its own, which ends with it."""
    redis_secret: str = ""
    """The Secret that holds the agents' password for Redis under the key `agent`; empty: none is needed."""
    secrets: str = ""
    """The Secret whose entries become variables of the agents: `PARALLELRUN_SECRET_NAME` for secrets that jobs may
    refer to, and credentials of stores; empty: there are none."""
    service_account: str = ""
    """Service account of the nodes, which belong to it: they end when it is removed. They get no token of it. That of
    the namespace when not set, to which they don't belong."""
    user: str = Field(default="10001:10001", pattern=r"^\d+:\d+$")
    """User and group of the nodes: agents and workers, who own the volumes. 0:0, root without its rights, is for
    volumes that belong to root."""

    @field_validator("volumes")
    @classmethod
    def _claims(cls, value: str) -> str:
        for each in words(value):
            VolumeClaim.parse(each)
        return value

    @property
    def claims(self) -> list[VolumeClaim]:
        return [VolumeClaim.parse(each) for each in words(self.volumes)]

    def allows(self, image: str) -> bool:
        """Return whether nodes may be of this image."""
        return image == self.image or is_allowed(image, words(self.images))


def words(text: str) -> list[str]:
    """The entries of a list."""
    return [word.strip() for word in text.split(",") if word.strip()]
