"""The operator's settings for nodes that are containers: what of their host they may have. Never part of a compute.

A compute is defined by whoever may use the API. That must not be a way to mount a host's files or to run any image as
an agent, which may read the volume of all jobs.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from parallelrun_core.code.dockerfile_check import reach_of_registry, registry_host
from parallelrun_core.names.patterns import USER_AND_GROUP_BUT_ROOT
from parallelrun_core.service.secret_sources import checked_place
from parallelrun_core.untrusted.addresses import Reach
from parallelrun_core.untrusted.connecting import looked_up_reach
from parallelrun_provisioner.engines.image_settings import ImageSettings, words
from parallelrun_provisioner.policy.images import is_allowed


class DockerSettings(ImageSettings):
    """Settings of the provisioner for the engines `docker` and `swarm`; lists have ',' between their entries."""

    prefix: ClassVar[str] = "PARALLELRUN_DOCKER_"
    mount_words: ClassVar[str] = "volume, such as data:/data or /srv/inputs:/inputs:ro"

    builds: bool = False
    """True if images may be built for jobs, by Dockerfiles of theirs: of whatever their makers want, as above."""
    build_seconds: float = Field(default=3600, gt=0)
    """Seconds that a build may take."""
    build_images: str = ""
    """Images that such a Dockerfile may build on and copy from, as patterns like `images` has them: the Engine fetches
    them, from the network of its machine. Empty: all that registries give to everybody, but for those whose name or
    address is an inner one."""
    build_network: str = ""
    """The network of a build's steps; empty: the Engine's default one."""
    build_cgroup: str = ""
    """The parent of the cgroups of a build's steps, which the operator has limited: an Engine limits neither their
    processes nor their files. Empty: the Engine's default one."""
    networks: str = ""
    """Networks of the nodes; one of them leads to Redis."""
    volumes: str = ""
    """The mounts of nodes, such as `data:/data,/srv/inputs:/inputs:ro`: at least the root folder that all services
    share."""
    stack: str = ""
    """The stack that nodes belong to, in a swarm: they end when it is removed. Empty: they belong to none."""
    redis_secret: str = ""
    """The source of the agents' password for Redis: a volume or a folder of the host, in which it is the file `secret`;
    in a swarm the name of its secret. Empty: none is needed."""
    kit: str = ""
    """The image with the agent for nodes of other images, or a folder of the host with what that image has in
    /opt/parallelrun; in a swarm, a folder of that name on all machines. Empty: jobs can't name images."""
    secrets_dir: str = ""
    """The folder among these volumes in which nodes find the secrets of datastores and jobs, or the URL of another
    source that this build has. No variable of the provisioner's goes with it."""
    cache: str = ""
    """A volume or a folder of the host in which nodes keep what they have built and fetched. Empty: each has its own,
    which ends with it."""
    user: str = Field(default="10001:10001", pattern=USER_AND_GROUP_BUT_ROOT)
    """User and group of the nodes' agents; they start as root, to be able to start workers as other users. Empty: they
    stay root without its rights, where an engine without root runs as the owner of the volumes."""
    worker_uids: str = "20000-59999"
    """Users that workers may be, one for each job. Empty: they are the agent's."""
    registries: Path | None = None
    """Folder with a file for each registry that asks for a password: JSON with `username` and `password`, and with
    `host` (such as `registry.example.org:5000`), unless the file is named like the host. No other host gets them."""

    _known_source = field_validator("secrets_dir")(checked_place)

    def builds_on(self, image: str) -> bool:
        """Return whether a Dockerfile of a job may name this image. Without a list, the name of its registry is looked
        up."""
        if patterns := words(self.build_images):
            return is_allowed(image, patterns)
        host = registry_host(image)
        return reach_of_registry(image) is Reach.PUBLIC and (not host or looked_up_reach(host) is Reach.PUBLIC)

    def login(self, registry: str) -> Path | None:
        """The file with user and password of a registry; None: it asks for none."""
        return self.registries / registry if self.registries and registry else None

    @property
    def is_kit_a_folder(self) -> bool:
        """Return whether somebody has put the agent for other images where nodes can have it."""
        return self.kit.startswith("/")
