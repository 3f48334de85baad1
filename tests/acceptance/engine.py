"""Finds a Docker Engine, or says what is missing."""

from __future__ import annotations

import os
import subprocess

import docker
from docker.errors import DockerException

REQUIRED = "PARALLELRUN_REQUIRE_DOCKER"
"""With 1, tests that need an engine fail where there is none."""

_HOW = "start one (`systemctl start docker`) or point DOCKER_HOST to one, with the compose plugin, version 2 or later"
_ASK_S = 30


class EngineMissing(Exception):
    """There is no engine that the tests could use."""


def reach() -> docker.DockerClient:
    """A client of the engine.

    Raises:
        EngineMissing: why there is none, and how to get one.
    """
    # Asked first, because a client that fails to connect leaves its sockets to the garbage collector.
    _said("version", "--format", "{{.Server.Version}}")
    compose = _said("compose", "version", "--short")
    if compose.lstrip("v").startswith("1."):
        raise EngineMissing(f"docker compose is version {compose}: {_HOW}")
    try:
        return docker.from_env(timeout=120)
    except DockerException as error:
        raise EngineMissing(f"no Docker Engine answers: {error}; {_HOW}") from error


def is_required() -> bool:
    """Whether it is a failure when there is none."""
    return os.environ.get(REQUIRED, "") not in ("", "0")


def _said(*arguments: str) -> str:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=_ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissing(f"no Docker Engine answers: {error}; {_HOW}") from error
    if done.returncode != 0:
        raise EngineMissing(f"no Docker Engine answers: {' '.join(done.stderr.split())}; {_HOW}")
    return done.stdout.strip()
