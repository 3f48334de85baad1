"""What the tests of this folder share: a Docker Engine, and an image of a node that only pretends to work."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import closing

import docker
import pytest

from tests.acceptance import engine as docker_engine

STAND_IN = "parallelrun-stand-in:engine-test"
_SCRIPT = (
    "#!/bin/sh",
    "echo started $*",
    'trap "exit 0" TERM',
    '[ "$1" = stubborn ] && trap "" TERM',
    "case $1 in failing) echo there is no room on the device; exit 3;; esac",
    "while :; do sleep 0.1; done",
)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A Docker Engine with the image STAND_IN."""
    missing = ""
    try:
        client = docker_engine.reach()
    except docker_engine.EngineMissing as error:
        missing = str(error)
    if missing and docker_engine.is_required():
        pytest.fail(f"{docker_engine.REQUIRED} is set, but {missing}", pytrace=False)
    if missing:
        pytest.skip(missing)
    with closing(client):
        lines = " ".join(f"'{line}'" for line in _SCRIPT)
        base = os.environ.get("BASE_IMAGE", "python:3.12-slim-bookworm")
        text = f"FROM {base}\nRUN printf '%s\\n' {lines} >/bin/parallelrun-agent && chmod 755 /bin/parallelrun-agent\n"
        client.images.build(fileobj=io.BytesIO(text.encode()), tag=STAND_IN)
        yield client
