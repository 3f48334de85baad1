"""Credentials of datastores: the content of the file of secrets that one refers to, as YAML or JSON:

s3              access_key_id and secret_access_key; session_token if there is one
gcs             the key of a service account, as Google's console writes it into a JSON file
azure_…         one of account_key, sas_token; or tenant_id, client_id and client_secret: the fields that are below
                `credentials` in Azure ML's YAML
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from parallelrun_core.datastores.definition import Datastore, GcsDatastore, S3Datastore
from parallelrun_core.errors import InvalidInput
from parallelrun_core.service.secret_source import MAX_BYTES, SecretUnusable
from parallelrun_core.untrusted.document import load_document

_PREFIX: Final = "aws_"
_WANTED_S3: Final = "access_key_id and secret_access_key, and session_token if there is one"
_WANTED_AZURE: Final = "account_key, or sas_token, or tenant_id, client_id and client_secret"
_WANTED_GCS: Final = "the JSON file of a service account's key"
_AUTHORITY: Final = "https://login.microsoftonline.com"


@dataclass(frozen=True)
class Keys:
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class ServiceAccount:
    """A service account of Google Cloud Storage."""

    key_file: str = field(repr=False)


@dataclass(frozen=True)
class AccountKey:
    """The key of an account of Azure Storage: all rights on the account."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class Sas:
    """A shared access signature of Azure Storage."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class ServicePrincipal:
    """A service principal of Azure: an application, which asks for tokens."""

    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)
    authority_url: str = _AUTHORITY


StoreCredentials = Keys | ServiceAccount | AccountKey | Sas | ServicePrincipal


def read_credentials(datastore: Datastore, content: bytes) -> StoreCredentials:
    """The credentials in the content of a file.

    Raises:
        SecretUnusable: it has others than the datastore needs, or none; repeats nothing of it.
    """
    expected = _WANTED_S3
    if not isinstance(datastore, S3Datastore):
        expected = _WANTED_GCS if isinstance(datastore, GcsDatastore) else _WANTED_AZURE
    try:
        document = load_document(content) if content and len(content) <= MAX_BYTES else None
        if not isinstance(document, dict):
            raise SecretUnusable(f"it must have {expected}, as YAML or JSON")
        if isinstance(datastore, S3Datastore):
            return _of_s3(document)
        return _of_google(document) if isinstance(datastore, GcsDatastore) else _of_azure(document)
    except (InvalidInput, KeyError, UnicodeDecodeError):
        raise SecretUnusable(f"it must have {expected}, as YAML or JSON") from None  # the cause would quote from it


def _of_s3(document: dict[Any, Any]) -> Keys:
    fields = {str(name).lower().removeprefix(_PREFIX): value for name, value in document.items()}
    return Keys(
        _text(fields, "access_key_id"), _text(fields, "secret_access_key"), str(fields.get("session_token") or "")
    )


def _of_google(document: dict[Any, Any]) -> ServiceAccount:
    _text(document, "client_email")
    _text(document, "private_key")
    return ServiceAccount(json.dumps(document))


def _of_azure(document: dict[Any, Any]) -> AccountKey | Sas | ServicePrincipal:
    if "account_key" in document:
        return AccountKey(_text(document, "account_key"))
    if "sas_token" in document:
        return Sas(_text(document, "sas_token").removeprefix("?"))
    return ServicePrincipal(
        _text(document, "tenant_id"), _text(document, "client_id"), _text(document, "client_secret"),
        str(document.get("authority_url") or _AUTHORITY).rstrip("/"),
    )  # fmt: skip


def _text(fields: dict[Any, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise KeyError(name)
    return value.strip()
