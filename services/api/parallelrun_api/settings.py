"""Settings of the API, read once by `main` and passed down."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field, SecretStr, field_validator

from parallelrun_core.code.snapshots import MAX_ZIP_BYTES
from parallelrun_core.hosting.settings import SealsComputes
from parallelrun_core.names.patterns import HEADER
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.path_rule import EVERYWHERE, Places

_BETWEEN_ROOTS: Final = re.compile(r":(?!//|\d+(?:[/:]|$))")
"""Not the colon of a URL, nor the one before its port."""


class ApiSettings(SealsComputes):
    """Settings of the API: where it listens, which clients it admits, and how much it accepts."""

    redis_user: ClassVar[str] = "api"

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port to listen on; 0: any that is free."""
    token: SecretStr = SecretStr("")
    """The token that clients must present as `Authorization: Bearer …`."""
    token_file: Path | None = None
    """File with the token. If neither is set, a random one is created, in `parallelrun/token` of the folder
    XDG_STATE_HOME, by default ~/.local/state."""
    tokens_file: Path | None = None
    """File with more tokens, a line `NAME TOKEN` for each, whose names are in the audit log. It is read again when it
    changes: who is removed from it is turned away. With it, no token is created."""
    operators: str = ""
    """Names of tokens in `tokens_file`, separated by ',', whose owners may also define computes. The token that is set
    by itself, or that the server has made, always may."""
    visibility: Literal["all", "own"] = "all"
    """Jobs, schedules and endpoints that people see who have tokens that this server has made: `all`, of which they
    change their own, or only their `own`. The scope `admin` sees and changes everything."""
    trusted_proxies: str = ""
    """Addresses and networks, separated by ',', of proxies that people sign in at, and that tell in a header who they
    are. They must remove that header from what others send."""
    proxy_user_header: str = Field(default="X-Forwarded-User", pattern=HEADER)
    """The header in which trusted proxies tell who a person is."""
    oidc_issuer: str = ""
    """URL of an OpenID Connect provider whose tokens (JWT) clients may present, as in their claim `iss`."""
    oidc_audience: str = ""
    """The name of this server in the claim `aud` of such tokens."""
    oidc_keys_url: str = ""
    """URL of the provider's keys (JWKS); by default, what its `/.well-known/openid-configuration` says."""
    oidc_name_claim: str = "preferred_username"
    """The claim with the person's name, the owner of what they make. People must not be able to change it."""
    oidc_groups_claim: str = "groups"
    """The claim with the person's groups or roles: a list, or a text with spaces between them."""
    oidc_admins: str = ""
    """Groups, separated by ',', that have the scope `admin`."""
    oidc_submitters: str = ""
    """Groups, separated by ',', that have the scope `submit`. If neither these nor readers are named, all people do."""
    oidc_readers: str = ""
    """Groups, separated by ',', that have the scope `read`."""
    cost_per_slot_hour: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Price of an hour of a worker, in any currency, for the use of the cluster by week and person."""
    cost_per_gpu_hour: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Price of an hour of a GPU, in the same currency, for the use of the cluster by week and person."""
    insecure: bool = False
    """Require no token: everybody on this machine can run code as this user. Only with a loopback address."""
    allowed_roots: str = ""
    """Folders, separated by ':', below which code, inputs and outputs of jobs must lie, and URLs of object stores, such
    as s3://bucket/prefix or s3:// for all of them. By default everything when listening on a loopback address, else
    nothing. Of the root folder, jobs can use the outputs of other jobs and the files of assets only."""
    package_hosts: str = ""
    """Hosts, separated by ',', each with its port if that isn't 443, of which jobs may name an index, or the URL of a
    package; `*`: all. By default all when listening on a loopback address, else none: packages then come from the
    index that nodes are configured with."""
    closed_folders: str = ""
    """More folders, separated by ':', whose files jobs can't use though they are below an allowed one."""
    jobs_apart: bool = False
    """Workers are users of their own (`--worker-uids`), so jobs can't read the outputs in other jobs' folders."""
    site: Path | None = None
    """A site file: what stands here for names and places in other people's documents (docs/assets.md). It is read again
    when it changes."""
    allowed_hosts: str = ""
    """Host names, separated by ',', that clients may use for this server, beyond those of the loopback interface."""
    max_body_bytes: int = Field(default=MAX_ZIP_BYTES + (2 << 20), ge=1 << 10)
    """Maximum bytes of a request, and so of a zip with a job's code; by default, what the code of a job may have."""
    max_upload_bytes: int = Field(default=100 << 30, ge=0)
    """Maximum bytes of all that clients of Azure ML's facade have uploaded; see docs/azure-client.md."""
    max_streams: int = Field(default=2000, ge=1)
    """Maximum number of event streams and long polls at the same time; at most three quarters of the connections."""
    max_connections: int = Field(default=3000, ge=16)
    """Maximum number of connections. Fewer, if the process may not open as many files."""
    head_seconds: float = Field(default=10.0, gt=0.05, le=3600)
    """Seconds within which the head of a request must arrive."""
    stall_seconds: float = Field(default=20.0, gt=0.05, le=3600)
    """Seconds after which a request's body that arrives with less than 500 bytes a second is given up; three times as
    many for an answer that the client doesn't read."""
    audit_log: Path | None = None
    """File for the audit log, which has a line for each change, each download and each refusal. By default they are
    written to stderr, among the other lines."""

    @field_validator("tokens_file", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return value or None  # what an orchestrator says of what isn't set

    @field_validator("token", mode="after")
    @classmethod
    def _sendable(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if any(not 33 <= ord(char) <= 126 for char in text):
            raise ValueError("a token must consist of visible ASCII characters")
        return value

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the API."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def places(self) -> Places:
        """Return where the paths of jobs may be."""
        entries = [each for each in _BETWEEN_ROOTS.split(self.allowed_roots) if each]
        roots = [each if is_url(each) else str(Path(each).absolute()) for each in entries]
        roots = roots or (list(EVERYWHERE) if self.is_loopback else [str(self.root)])
        hosts = [each.strip().lower() for each in self.package_hosts.split(",") if each.strip()]
        return Places(
            roots=roots,
            closed=[str(Path(folder).absolute()) for folder in self.closed_folders.split(":") if folder],
            are_jobs_apart=self.jobs_apart,
            package_hosts=hosts or (["*"] if self.is_loopback else []),
        )

    @property
    def operator_names(self) -> frozenset[str]:
        """The names in `operators`."""
        return frozenset(name.strip() for name in self.operators.split(",") if name.strip())

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a request's Host header may have; empty: any.

        A page on the web can point a name of its own at 127.0.0.1; the browser then takes this server for a part
        of that site. The Host header shows this (DNS rebinding).
        """
        named = {name.strip().lower() for name in self.allowed_hosts.split(",") if name.strip()}
        if not named and not self.is_loopback:
            return frozenset()
        own_host = f"[{self.host}]" if ":" in self.host else self.host
        return frozenset(named | {"localhost", "127.0.0.1", "[::1]"} | ({own_host} if self.is_loopback else set()))
