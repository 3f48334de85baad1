"""Containers of a Docker Engine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from docker.errors import APIError

from tests.acceptance import engine
from tests.engines.target import PATIENCE_S, Missing

ROOT = Path(__file__).parents[3]
LABEL = "parallelrun.launch"


class Docker:
    """The Engine that `DOCKER_HOST` names, with an image of this checkout's agent."""

    name = "docker"
    has_images = False

    def __enter__(self) -> Self:
        try:
            self.engine = engine.reach()
        except engine.EngineMissing as error:
            raise Missing(str(error)) from error
        self._image = build("agent")
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def document(self) -> dict[str, Any]:
        return {"type": self.name, "slots": 1, "stop_seconds": 30}

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        # The services are this test's user, and so must agents be: the owner of the volume.
        return {
            "PARALLELRUN_DOCKER_IMAGE": self._image,
            "PARALLELRUN_DOCKER_NETWORKS": "host",
            "PARALLELRUN_DOCKER_VOLUMES": ",".join(f"{folder}:{folder}" for folder in seen),
            "PARALLELRUN_DOCKER_REDIS_SECRET": str(secret),
            "PARALLELRUN_DOCKER_USER": "",
            "PARALLELRUN_DOCKER_WORKER_UIDS": "",
        }

    def left(self) -> list[str]:
        return self._known(ended=True)

    def remove(self, launch_id: str) -> None:
        for each in self.engine.containers.list(all=True, filters={"label": f"{LABEL}={launch_id}"}):
            each.remove(force=True)

    def running(self) -> list[str]:
        return self._known()

    def _known(self, *, ended: bool = False) -> list[str]:
        there = self.engine.containers.list(all=ended, filters={"label": LABEL}, ignore_removed=True)
        return [str(each.labels[LABEL]) for each in there]

    def kill(self, launch_id: str) -> None:
        for container in self.engine.containers.list(filters={"label": f"{LABEL}={launch_id}"}, ignore_removed=True):
            with suppress(APIError):
                container.kill()


def build(target: str) -> str:
    """Build an image of this checkout, with the packages of the examples; returns its name."""
    image = f"parallelrun-{target}:engine-test"
    base = os.environ.get("BASE_IMAGE")
    arguments = ["AGENT_REQUIREMENTS=examples.txt", *([f"BASE_IMAGE={base}"] if base else [])]
    options = [part for argument in arguments for part in ("--build-arg", argument)]
    done = subprocess.run(
        ["docker", "build", "--quiet", "--target", target, "--tag", image, *options, "."],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return image


def reach() -> Docker:
    return Docker()
