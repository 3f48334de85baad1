"""The operator's settings for nodes that are Pods: what of their cluster they may have. Never part of a compute."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from parallelrun_core.names.patterns import USER_AND_GROUP
from parallelrun_provisioner.engines.image_settings import ImageSettings


class KubernetesSettings(ImageSettings):
    """Settings of the provisioner for the engine `kubernetes`; lists have ',' between their entries."""

    prefix: ClassVar[str] = "PARALLELRUN_KUBERNETES_"
    mount_words: ClassVar[str] = "claim, such as parallelrun-data:/data or inputs:/inputs:ro"

    kubeconfig: Path | None = None
    """File that says where the API is; the service account that is mounted into the provisioner's Pod when not set."""
    namespace: str = ""
    """Namespace of the nodes; that of the service account, or of the file's context, when not set."""
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
    user: str = Field(default="10001:10001", pattern=USER_AND_GROUP)
    """User and group of the nodes: agents and workers, who own the volumes. 0:0, root without its rights, is for
    volumes that belong to root."""
