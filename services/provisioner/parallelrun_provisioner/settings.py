"""Settings of a provisioner."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr

from parallelrun_core.errors import InvalidInput
from parallelrun_core.service.settings import ServiceSettings
from parallelrun_core.store.credentials import read_secret
from parallelrun_provisioner.engines.interface import Surroundings


class ProvisionerSettings(ServiceSettings):
    """Settings of one provisioner; those of an engine are read by the engine."""

    redis_user: ClassVar[str] = "provisioner"

    agent_secret: SecretStr = SecretStr("")
    """The password of agents on Redis, which engines bring to their nodes. Give it in the environment or in a file."""
    agent_secret_file: Path | None = None
    """A file with that password, which only its owner can read; it goes before `agent_secret`."""
    node_redis_url: str = ""
    """URL of Redis as nodes reach it; that of the provisioner when not set."""
    poll_seconds: float = Field(default=0.5, gt=0, le=60)
    """Seconds between two looks at what jobs need and what there is."""

    def surroundings(self, cluster: str) -> Surroundings:
        """What engines are told.

        Raises:
            SystemExit: the file with the secret can't be read, or others can read it, too.
        """
        secret = self.agent_secret.get_secret_value()
        if self.agent_secret_file is not None:
            try:
                secret = read_secret(self.agent_secret_file)
            except InvalidInput as error:
                raise SystemExit(f"--agent-secret-file: {error}") from None
        url = self.node_redis_url or self.redis_url
        return Surroundings(cluster=cluster, root=self.root, redis_url=url, agent_secret=secret)
