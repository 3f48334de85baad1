"""Settings of a provisioner."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field, SecretStr, field_validator

from parallelrun_core.computes.kinds import MANUAL, kinds
from parallelrun_core.errors import InvalidInput
from parallelrun_core.hosting.settings import MOST_ALONE_S, SealsComputes, secret_of
from parallelrun_core.store.credentials import has_login
from parallelrun_provisioner.engines.interface import EngineEnvironment

_IN_A_FILE: Final = "give the password in a file, with --redis-secret-file, and that of agents with --agent-secret-file"


class ProvisionerSettings(SealsComputes):
    """Settings of one provisioner; those of an engine are read by the engine."""

    redis_user: ClassVar[str] = "provisioner"

    kinds: str = Field(default="", validate_default=True)
    """The kinds of computes that it starts nodes for, with ',' between them; the first one is what documents of Azure
    ML's type `amlcompute` mean. With `local`, whoever may define a compute runs processes as this user, beside it."""
    agent_secret: SecretStr = SecretStr("")
    """The password of agents on Redis, which engines bring to their nodes. Give it in the environment or in a file."""
    agent_secret_file: Path | None = None
    """A file with that password, which only its owner can read; it goes before `agent_secret`."""
    node_redis_url: str = ""
    """URL of Redis as nodes reach it, without a user or a password, which engines would show; that of the provisioner
    when not set."""
    node_alone_seconds: float = Field(default=1800.0, ge=0, le=MOST_ALONE_S)
    """Seconds that a node goes on while Redis doesn't answer it, before it ends by itself: its provisioner may have
    died as well. 0: for ever."""
    poll_seconds: float = Field(default=0.5, gt=0, le=60)
    """Seconds between two looks at what jobs need and what there is."""

    release_on_stop: bool = False
    """Give back all nodes when it is asked to end, because no other one goes on, as when a cluster is taken down."""

    @field_validator("kinds")
    @classmethod
    def _are_known(cls, value: str) -> str:
        kind_names = [kind for kind in kinds() if kind != MANUAL]
        entries = [kind.strip() for kind in value.split(",") if kind.strip()]
        if not entries or not set(entries) <= set(kind_names):
            wrong = next((f"{kind!r} is none; " for kind in entries if kind not in kind_names), "")
            raise ValueError(
                f"{wrong}name those that it starts nodes for, with ',' between them: {', '.join(kind_names)}"
            )
        return ",".join(entries)

    @field_validator("node_redis_url")
    @classmethod
    def _can_be_shown(cls, value: str) -> str:
        if has_login(value):
            raise ValueError(f"it has a user or a password in it: {_IN_A_FILE}")
        return value

    @property
    def served(self) -> tuple[str, ...]:
        """The kinds, the main one first."""
        return tuple(self.kinds.split(","))

    def serves(self, kind: str) -> bool:
        """Return whether it starts nodes for computes of this kind."""
        return kind in self.served

    def engine_environment(self, cluster: str) -> EngineEnvironment:
        """Return what engines are told.

        Raises:
            SystemExit: the file with the secret can't be read, or others can read it, too.
            InvalidInput: the URL of Redis has a user or a password in it, which plans and engines would show.
        """
        secret = secret_of(self.agent_secret, self.agent_secret_file, "--agent-secret-file")
        url = self.node_redis_url or self.redis_url
        if has_login(url):
            raise InvalidInput.at(
                "redis_url", "it has a user or a password in it, which engines would show", _IN_A_FILE
            )
        return EngineEnvironment(cluster=cluster, root=self.root, redis_url=url, agent_secret=secret)
