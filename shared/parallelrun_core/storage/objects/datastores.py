"""Clients of datastores: made from a definition and its credentials, and made anew when either changes.

Credentials that a datastore names go before all that the environment has: they are handed over by a function, since the
library would otherwise mix them with keys and tokens that it finds there.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.datastores.credentials import AccountKey, Keys, Sas, ServiceAccount, ServicePrincipal
from parallelrun_core.datastores.definition import GcsDatastore, S3Datastore
from parallelrun_core.storage.objects.environment import (
    at_google_server,
    azure_options,
    library_finds_credentials,
    s3_credentials,
    s3_region,
)
from parallelrun_core.storage.objects.redirects import staying_at
from parallelrun_core.untrusted.connecting import open_directly

if TYPE_CHECKING:
    from collections.abc import Callable

    from obstore.store import ClientConfig, ObjectStore, RetryConfig

    from parallelrun_core.datastores.credentials import StoreCredentials
    from parallelrun_core.datastores.definition import AzureDatastore, Datastore
    from parallelrun_core.datastores.registry import ResolvedDatastore

_TOKEN_S: Final = 20
_SCOPE: Final = "https://storage.azure.com/.default"
_EARLY_S: Final = 120
_TOKENS_OF_GOOGLE: Final = "oauth2.googleapis.com"


def make_client(resolved: ResolvedDatastore, options: ClientConfig, retries: RetryConfig) -> ObjectStore:
    """A new client of a datastore, whose keys begin below its prefix.

    Raises:
        NoCredentials: it names none, and there are none here.
        obstore.exceptions.BaseError: the library refuses something of it.
    """
    datastore, credentials = resolved
    if datastore.root.startswith("http://"):
        options = {**options, "allow_http": True}  # who has defined it has said so
    if server := _only_server(datastore, credentials):
        options = staying_at(server, options, _TOKENS_OF_GOOGLE)
    common = {
        "prefix": datastore.prefix or None,
        "client_options": options,
        "retry_config": retries,
        **({"skip_signature": datastore.anonymous} if datastore.anonymous or credentials is not None else {}),
    }
    if isinstance(datastore, S3Datastore):
        return _s3(datastore, credentials, common)
    if isinstance(datastore, GcsDatastore):
        return _gcs(datastore, credentials, common)
    return _azure(datastore, credentials, common)


def _only_server(datastore: Datastore, credentials: StoreCredentials | None) -> str:
    """The URL of the one server that a client has to reach; empty where the library asks others for credentials, or
    the server is the provider's own.
    """
    if credentials is None and not datastore.anonymous and not isinstance(datastore, S3Datastore):
        return ""
    if isinstance(datastore, S3Datastore):
        is_own = datastore.anonymous or credentials is not None or not library_finds_credentials()
        return _server_of(datastore) if is_own else ""
    return datastore.endpoint if isinstance(datastore, GcsDatastore) else datastore.server


def _server_of(datastore: S3Datastore) -> str:
    return datastore.endpoint if datastore.path_style or not datastore.endpoint else _with_bucket(datastore)


def _s3(datastore: S3Datastore, credentials: StoreCredentials | None, common: dict[str, Any]) -> ObjectStore:
    from obstore.store import S3Store

    settings: dict[str, Any] = {"region": datastore.region or s3_region()}
    if datastore.endpoint:
        settings["endpoint"] = _server_of(datastore)
    settings["virtual_hosted_style_request"] = not datastore.path_style
    if isinstance(credentials, Keys):
        settings["credential_provider"] = lambda: {
            "access_key_id": credentials.access_key_id,
            "secret_access_key": credentials.secret_access_key,
            "token": credentials.session_token or None,
            "expires_at": None,
        }
    elif not datastore.anonymous and (find := s3_credentials()) is not None:
        settings["credential_provider"] = find
    return S3Store(datastore.bucket, **common, **settings)


def _with_bucket(datastore: S3Datastore) -> str:
    scheme, _, host = datastore.endpoint.partition("://")
    return f"{scheme}://{datastore.bucket}.{host}"


def _gcs(datastore: GcsDatastore, credentials: StoreCredentials | None, common: dict[str, Any]) -> ObjectStore:
    from obstore.store import GCSStore

    settings: dict[str, Any] = {"base_url": datastore.endpoint} if datastore.endpoint else {}
    if isinstance(credentials, ServiceAccount):
        settings["service_account_key"] = credentials.key_file
    elif datastore.endpoint and datastore.anonymous:
        settings = {**at_google_server(datastore.endpoint)}
    return GCSStore(datastore.bucket, **common, **settings)


def _azure(datastore: AzureDatastore, credentials: StoreCredentials | None, common: dict[str, Any]) -> ObjectStore:
    from obstore.store import AzureStore

    settings: dict[str, Any] = azure_options() | {"account_name": datastore.account_name, "endpoint": datastore.server}
    provider: Callable[[], Any] | None = None
    if isinstance(credentials, AccountKey):
        provider = lambda: {"access_key": credentials.key, "expires_at": None}  # noqa: E731 - one of three
    elif isinstance(credentials, Sas):
        provider = lambda: {"sas_token": credentials.token, "expires_at": None}  # noqa: E731 - one of three
    elif isinstance(credentials, ServicePrincipal):
        provider = lambda: azure_token(credentials)  # noqa: E731 - one of three
    if provider is not None:
        settings |= {"credential_provider": provider}
        settings.pop("account_key", None)
    return AzureStore(datastore.container, **common, **settings)


def azure_token(principal: ServicePrincipal) -> dict[str, Any]:
    """A token for an application, as `AzureStore` takes it.

    Raises:
        OSError: there is none; has no secret in it.
    """
    form = {
        "grant_type": "client_credentials",
        "client_id": principal.client_id,
        "client_secret": principal.client_secret,
        "scope": _SCOPE,
    }
    url = f"{principal.authority_url}/{urllib.parse.quote(principal.tenant_id, safe='')}/oauth2/v2.0/token"
    if not url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise OSError(13, "authority_url must begin with https://, or a secret could be read on its way")
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode())  # noqa: S310 - its scheme is checked
    try:
        with open_directly(request, _TOKEN_S) as answer:
            document = json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(13, f"Azure refuses a token for {principal.client_id} (HTTP {error.code})") from None
    lives_s = max(0, int(document["expires_in"]) - _EARLY_S)
    return {"token": document["access_token"], "expires_at": datetime.now(UTC) + timedelta(seconds=lives_s)}
