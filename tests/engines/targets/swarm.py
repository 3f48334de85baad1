"""Services of a Docker Swarm with one machine."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Self

from tests.engines.targets.docker import LABEL, Docker


class Swarm(Docker):
    """The Engine as the manager of a swarm, which it becomes if it is in none."""

    name = "swarm"
    has_images = False

    def __init__(self) -> None:
        self._secret = f"parallelrun-{secrets.token_hex(4)}"

    def __enter__(self) -> Self:
        super().__enter__()
        if self.engine.info()["Swarm"]["LocalNodeState"] == "inactive":
            self.engine.swarm.init(advertise_addr="127.0.0.1")
        return self

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        # Secrets of a swarm have one name each, and other tests may share it.
        self.engine.secrets.create(name=self._secret, data=(secret / "secret").read_bytes())
        return {**super().environment(seen, secret), "PARALLELRUN_DOCKER_REDIS_SECRET": self._secret}

    def left(self) -> list[str]:
        return [str(each.name) for each in self.engine.services.list(filters={"label": LABEL})]

    def remove(self, launch_id: str) -> None:
        for each in self.engine.services.list(filters={"label": f"{LABEL}={launch_id}"}):
            self.engine.api.remove_service(each.id)  # type: ignore[no-untyped-call]

    def __exit__(self, *exc_info: object) -> None:
        for secret in self.engine.secrets.list(filters={"name": self._secret}):
            secret.remove()
        super().__exit__(*exc_info)


def reach() -> Swarm:
    return Swarm()
