"""Settings that all services share: read once at the edge, from flags or `PARALLELRUN_*` variables, then passed down.

Each service has a subclass in its own `settings.py`. `--lease-seconds` and `PARALLELRUN_LEASE_SECONDS` are the same
setting.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from parallelrun_core.errors import InvalidInput
from parallelrun_core.hosting.sources import read_flags, read_variables
from parallelrun_core.problems import message_of
from parallelrun_core.service.secret_sources import absolute_place, checked_place
from parallelrun_core.wire.leasing import LEADER_S, LEASE_S

if TYPE_CHECKING:
    from parallelrun_core.tracing.switch import Tracing

_PREFIX: Final = "PARALLELRUN_"
MOST_ALONE_S: Final = 30 * 86_400.0
"""The longest that a node may be told to go on while Redis doesn't answer."""


class ServiceSettings(BaseModel):
    """The settings of every service."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    redis_user: ClassVar[str] = ""
    """The name of its user on Redis: that of its role."""

    redis_url: str = "redis://127.0.0.1:6379/0"
    """URL of Redis (6.2 or later) or Valkey."""
    redis_secret: SecretStr = SecretStr("")
    """The password of this service's user on Redis, whose name is the service's: api, master, agent,
    concatenator or provisioner.
    Give it in the environment or in a file: everybody on a machine can read command lines."""
    redis_secret_file: Path | None = None
    """A file with that password, which only its owner can read; it goes before `redis_secret`."""
    root: Path = Path("parallelrun-data")
    """The folder that all services share: jobs, code, outputs."""
    disk_floor_bytes: int = Field(default=256 << 20, ge=0)
    """Bytes that are to stay free on the volume of the root folder, at most a fiftieth of it: below, nothing new is
    accepted or handed out, and running jobs wait; 0: no such floor."""
    lease_seconds: float = Field(default=LEASE_S, gt=0.05, le=3600)
    """Seconds that a silent agent keeps its mini-batches."""
    leader_seconds: float = Field(default=LEADER_S, gt=0.05, le=3600)
    """Seconds that a silent master keeps leading a job."""
    health_port: int = Field(default=0, ge=0, le=65535)
    """Port of /livez, /readyz and /metrics on the loopback interface; 0: none."""
    allow_volatile_redis: bool = False
    """Accept a Redis that doesn't keep its data. For tests."""
    log_format: Literal["json", "text"] = "json"
    """The form of this service's log on stderr."""

    @field_validator("root")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.absolute()

    @property
    def redis_login(self) -> str:
        """The URL of Redis with this service's user and secret, if it has one. Not to be logged.

        Not checked before: a service may have to become another user first, who can read it.

        Raises:
            SystemExit: the file with the secret can't be read, or others can read it, too.
        """
        from parallelrun_core.store.credentials import login

        secret = secret_of(self.redis_secret, self.redis_secret_file, "--redis-secret-file")
        return login(self.redis_url, self.redis_user, secret)

    @staticmethod
    def mlflow_credentials() -> dict[str, str]:
        """The variables of this service's environment that let it into a tracking server of MLflow."""
        return {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_TRACKING_")}

    @staticmethod
    def tracing() -> Tracing | None:
        """Return what the variables of OpenTelemetry in this service's environment say; None: there are no traces."""
        from parallelrun_core.tracing.switch import tracing_of

        return tracing_of(os.environ)

    @property
    def lease_ms(self) -> int:
        return round(self.lease_seconds * 1000)

    @property
    def leader_ms(self) -> int:
        return round(self.leader_seconds * 1000)

    @classmethod
    def from_command_line(cls, argv: list[str] | None = None) -> Self:
        """Read flags and environment; on an invalid value, exit and print what is wrong."""
        values = {**read_variables(cls, _PREFIX), **read_flags(cls, sys.argv[1:] if argv is None else argv)}
        try:
            return cls(**values)
        except ValidationError as error:
            flags = [(".".join(map(str, each["loc"])).replace("_", "-"), message_of(each)) for each in error.errors()]
            raise SystemExit("\n".join(f"--{flag}: {message}" for flag, message in flags)) from error


class SealsComputes(ServiceSettings):
    """The settings of a service that defines computes, or starts their nodes."""

    computes_key: SecretStr = SecretStr("")
    """A random text, which only the API and the provisioner have. With it, definitions of computes are sealed, and no
    others believed: where code of jobs may write to the root folder, it could define computes otherwise."""
    computes_key_file: Path | None = None
    """A file with that text, which only its owner can read; it goes before `computes_key`."""

    @property
    def sealing_key(self) -> bytes:
        """The key; empty: nothing is sealed.

        Raises:
            SystemExit: the file can't be read, or others can read it, too.
        """
        return secret_of(self.computes_key, self.computes_key_file, "--computes-key-file").encode()


def secret_of(secret: SecretStr, file: Path | None, flag: str) -> str:
    """A secret, from its file if there is one.

    Raises:
        SystemExit: the file can't be read, or others can read it, too.
    """
    from parallelrun_core.store.credentials import read_secret

    if file is None:
        return secret.get_secret_value()
    try:
        return read_secret(file)
    except InvalidInput as error:
        raise SystemExit(f"{flag}: {error}") from None


class ReadsStores(ServiceSettings):
    """The settings of a service that reads or writes users' data."""

    secrets_dir: str = ""
    """Local folder with secrets, for this service's user alone (mode 0700): those of datastores in `datastores`, and,
    on nodes, a file for each secret that jobs may refer to. Or the URL of another source that this build has."""

    @field_validator("secrets_dir")
    @classmethod
    def _whole(cls, value: str) -> str:
        return absolute_place(checked_place(value))
