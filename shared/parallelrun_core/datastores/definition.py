"""Definitions of datastores: a bucket or container, where its server is, and which file on the nodes has its
credentials.

The fields of `azure_blob` and `azure_data_lake_gen2` are those of Azure ML's YAML, with a prefix and an address of a
server added; `s3` and `gcs` are ours.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, Field, StrictBool, TypeAdapter, ValidationInfo, field_validator

from parallelrun_core.described import Strict
from parallelrun_core.names.patterns import ACCOUNT, BUCKET, CONTAINER, PLAIN_NAME
from parallelrun_core.untrusted.addresses import Reach, is_literal_of
from parallelrun_core.untrusted.canonical import canonical_origin, check_key

SECRET_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$"  # noqa: S105 - a pattern
OF_DATASTORES: Final = "datastores"
"""The folder in the folder of secrets with the credentials of datastores."""
_SUFFIX: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_SUFFIX_OF_AZURE: Final = "core.windows.net"
_MAX: Final = 1024


def _server(url: str) -> str:
    """Return the URL of a server without a '/' at its end; empty if none is given.

    Raises:
        ValueError: it isn't one, or has more in it than it takes to reach the server.
    """
    if not url:
        return ""
    origin = canonical_origin(url)
    if is_literal_of(origin.partition("://")[2], Reach.MACHINE):
        raise ValueError("must not be an address where only machines themselves have business")
    return origin


_Server = Annotated[str, AfterValidator(_server), Field(max_length=_MAX)]


class Credentials(Strict):
    """The place where a node finds the credentials; without this, they are what the node itself has: its environment,
    its role."""

    secret: str = Field(min_length=1, max_length=_MAX, pattern=SECRET_PATTERN)
    """A file below the folder of secrets on the nodes (`PARALLELRUN_SECRETS_DIR`)."""


class _Definition(Strict):
    name: str = Field(pattern=PLAIN_NAME, examples=["images"])
    description: str = Field(default="", max_length=4096)
    tags: dict[str, str] = Field(default_factory=dict)
    prefix: str = Field(default="", max_length=_MAX)
    """The folder in the bucket or container that paths start from; by default, all of it."""
    anonymous: StrictBool = False
    """Ask without any credentials, as of public data."""
    credentials: Credentials | None = None

    @field_validator("prefix")
    @classmethod
    def _is_a_folder(cls, value: str) -> str:
        check_key(value.strip("/"))
        return value.strip("/")

    @property
    def place(self) -> str:
        """The URL of the bucket or container: that of the server, if it has one of its own, with the bucket behind it.
        Its secret is bound to it."""
        raise NotImplementedError

    @property
    def root(self) -> str:
        """The URL of all that this stands for, by which it is allowed or refused."""
        return f"{self.place}/{self.prefix}" if self.prefix else self.place


class S3Datastore(_Definition):
    """A bucket of Amazon S3, or of a server that speaks its protocol, such as MinIO."""

    type: Literal["s3"]
    bucket: str = Field(pattern=BUCKET, examples=["images"])
    endpoint: _Server = Field(default="", examples=["https://minio.example.com:9000"])
    """URL of the server; by default Amazon's, or what the node's environment says (`AWS_ENDPOINT_URL`)."""
    region: str = Field(default="", max_length=64, pattern=r"^[a-z0-9-]*$")
    """By default what the node's environment says."""
    path_style: StrictBool = True
    """True if the bucket is in the path of a URL; else it is part of the server's name."""

    @property
    def place(self) -> str:
        return f"{self.endpoint}/{self.bucket}" if self.endpoint else f"s3://{self.bucket}"


class GcsDatastore(_Definition):
    """A bucket of Google Cloud Storage."""

    type: Literal["gcs"]
    bucket: str = Field(pattern=BUCKET, examples=["images"])
    endpoint: _Server = ""
    """URL of another server that speaks its protocol."""

    @property
    def place(self) -> str:
        return f"{self.endpoint}/{self.bucket}" if self.endpoint else f"gs://{self.bucket}"


class _AzureDefinition(_Definition):
    account_name: str = Field(pattern=ACCOUNT, examples=["mystorageaccount"])
    endpoint: str = Field(default=_SUFFIX_OF_AZURE, max_length=_MAX, examples=["core.windows.net"])
    """The end of its servers' names, or the URL of a server."""

    @field_validator("endpoint")
    @classmethod
    def _is_a_server(cls, value: str, info: ValidationInfo) -> str:
        if "/" not in value and value:
            if not _SUFFIX.fullmatch(value):
                raise ValueError(f"must be like {_SUFFIX_OF_AZURE}, or the URL of a server")
            return value
        # An emulator has all accounts on one server, each below its name.
        account = f"/{info.data.get('account_name', '')}"
        server = value.rstrip("/")
        if len(account) > 1 and server.endswith(account):
            return _server(server.removesuffix(account)) + account
        return _server(value) or _SUFFIX_OF_AZURE

    @property
    def container(self) -> str:
        """The name of its container, which Data Lake calls a file system."""
        raise NotImplementedError

    @property
    def server(self) -> str:
        """URL of the account's blob service."""
        return self.endpoint if "/" in self.endpoint else f"https://{self.account_name}.blob.{self.endpoint}"

    @property
    def place(self) -> str:
        if "/" in self.endpoint:
            return f"{self.endpoint}/{self.container}"
        return f"abfss://{self.container}@{self.account_name}.dfs.{self.endpoint}"


class AzureBlobDatastore(_AzureDefinition):
    """A container of Azure Blob Storage, as Azure ML's YAML describes it."""

    type: Literal["azure_blob"]
    container_name: str = Field(pattern=CONTAINER, examples=["images"])
    protocol: Literal["https", "wasbs"] = "https"
    """Has no effect: either is encrypted."""

    @property
    def container(self) -> str:
        return self.container_name


class DataLakeDatastore(_AzureDefinition):
    """A file system of Azure Data Lake Storage Gen2, as Azure ML's YAML describes it."""

    type: Literal["azure_data_lake_gen2"]
    filesystem: str = Field(pattern=CONTAINER, examples=["images"])
    protocol: Literal["https", "abfss"] = "https"
    """Has no effect: either is encrypted."""

    @property
    def container(self) -> str:
        return self.filesystem


AzureDatastore = AzureBlobDatastore | DataLakeDatastore
Datastore = S3Datastore | GcsDatastore | AzureBlobDatastore | DataLakeDatastore
OF_TYPE: Final[dict[str, type[Datastore]]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(Datastore)
}
ANY: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[Datastore, Field(discriminator="type")])
