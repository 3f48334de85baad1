"""Clients of botocore's for stores that speak S3's protocol, with the same credentials as `clients.py` has for them."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from parallelrun_core.datastores.credentials import Keys
from parallelrun_core.datastores.definition import S3Datastore
from parallelrun_core.datastores.registry import ResolvedDatastore
from parallelrun_core.storage.location import datastore_of
from parallelrun_core.storage.objects.address import Address
from parallelrun_core.storage.objects.clients import StoresMissing, present_datastore
from parallelrun_core.storage.objects.environment import endpoint_of, is_unsigned, s3_region
from parallelrun_core.storage.schemes import scheme_of

_TRIES: Final = 10
"""Of each request, over about a minute and a half."""
_OF_SCHEMES: Final[dict[str, Any]] = {}
_OF_DATASTORES: Final[dict[str, tuple[ResolvedDatastore, Any]]] = {}
"""With what each was made from."""


class S3Place(NamedTuple):
    client: Any
    where: dict[str, str]
    """Bucket and key, as botocore's methods take them."""


def is_s3(address: Address) -> bool:
    """Return whether a store speaks S3's protocol.

    Raises:
        StoreAway: it is a datastore whose credentials can't be had just now.
        DatastoreUnusable: it is a datastore that isn't defined, or whose credentials aren't here.
    """
    name = datastore_of(address.store)
    if name:
        return isinstance(present_datastore(name).datastore, S3Datastore)
    row = scheme_of(address.store)
    return row is not None and row.protocol == "s3"


def place_of(address: Address) -> S3Place:
    """The client for an object of such a store, and what the object is called there.

    Raises:
        StoresMissing: there is no library for it.
        StoreAway: it is a datastore whose credentials can't be had just now.
        DatastoreUnusable: it is a datastore that isn't defined, or whose credentials aren't here.
    """
    name = datastore_of(address.store)
    if not name:
        scheme, _, bucket = address.store.partition("://")
        return S3Place(_client(scheme), {"Bucket": bucket, "Key": address.key})
    present = present_datastore(name)
    datastore = present.datastore
    if not isinstance(datastore, S3Datastore):
        raise TypeError(f"datastore {name!r} is not of type s3")
    cached_client = _OF_DATASTORES.get(name)
    if cached_client is None or cached_client[0] != present:
        cached_client = _OF_DATASTORES[name] = present, _client_of(datastore, present)
    key = f"{datastore.prefix}/{address.key}".strip("/")
    return S3Place(cached_client[1], {"Bucket": datastore.bucket, "Key": key})


def _client(scheme: str) -> Any:
    if scheme not in _OF_SCHEMES:
        endpoint = endpoint_of(scheme)
        style = {"addressing_style": "path"} if endpoint else {}
        _OF_SCHEMES[scheme] = _new_client(style, s3_region(), is_anonymous=is_unsigned(), endpoint_url=endpoint or None)
    return _OF_SCHEMES[scheme]


def _client_of(datastore: S3Datastore, present: ResolvedDatastore) -> Any:
    settings: dict[str, Any] = {"endpoint_url": datastore.endpoint or endpoint_of("s3") or None}
    if isinstance(present.credentials, Keys):
        settings["aws_access_key_id"] = present.credentials.access_key_id
        settings["aws_secret_access_key"] = present.credentials.secret_access_key
        settings["aws_session_token"] = present.credentials.session_token or None
    style = {"addressing_style": "path" if datastore.path_style else "virtual"}
    is_anonymous = datastore.anonymous or (present.credentials is None and is_unsigned())
    return _new_client(style, datastore.region or s3_region(), is_anonymous=is_anonymous, **settings)


def _new_client(style: dict[str, str], region: str, *, is_anonymous: bool = False, **settings: Any) -> Any:
    try:
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.session import get_session
    except ImportError as error:
        raise StoresMissing("object stores need botocore: in the checkout, pip install '.[stores]'") from error
    config = Config(
        retries={"mode": "standard", "total_max_attempts": int(os.environ.get("AWS_MAX_ATTEMPTS", _TRIES))},
        # What isn't Amazon may know neither its newer checksums nor buckets as host names.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3=style,
        **({"signature_version": UNSIGNED} if is_anonymous else {}),
    )
    return get_session().create_client("s3", region_name=region, config=config, **settings)


def forget() -> None:
    """Make clients anew, as when the environment has changed. For tests."""
    for client in (*_OF_SCHEMES.values(), *(client for _, client in _OF_DATASTORES.values())):
        client.close()
    _OF_SCHEMES.clear()
    _OF_DATASTORES.clear()
