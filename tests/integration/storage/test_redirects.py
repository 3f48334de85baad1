"""An object store leads nobody to another server: neither what it is asked for, nor what is sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import obstore
import pytest
from obstore.exceptions import BaseError

from parallelrun_core.datastores.credentials import AccountKey, Keys
from parallelrun_core.datastores.definition import OF_TYPE
from parallelrun_core.datastores.registry import ResolvedDatastore
from parallelrun_core.storage.objects import ObjectStorage, clients, datastores
from parallelrun_core.storage.objects.redirects import LED_AWAY, is_led_away
from parallelrun_core.storage.objects.trouble import AccessDenied
from tests.security.local_store import ALLOWED, PRIVATE, LocalStore

pytestmark = pytest.mark.integration
KEYS = Keys(access_key_id="a", secret_access_key="b", session_token="")
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "s3 with keys": ({"type": "s3", "bucket": ALLOWED, "region": "us-east-1"}, KEYS),
    "s3 for everybody": ({"type": "s3", "bucket": ALLOWED, "region": "us-east-1", "anonymous": True}, None),
    "gcs for everybody": ({"type": "gcs", "bucket": ALLOWED, "anonymous": True}, None),
    "azure with a key": (
        {"type": "azure_blob", "container_name": ALLOWED, "account_name": "account"}, AccountKey(key="a2V5"),
    ),
}  # fmt: skip


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStore]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with LocalStore() as store:
        for status in (301, 302, 303, 307, 308):
            store.redirects[f"{ALLOWED}/away{status}"] = status, f"{store.other_url}/{PRIVATE}/x"
            store.redirects[f"{ALLOWED}/here{status}"] = status, f"{store.url}/{ALLOWED}/x"
        yield store


@pytest.mark.parametrize("kind", KINDS)
def test_the_client_of_a_datastore_stays_at_its_server(kind: str, store: LocalStore) -> None:
    fields, credentials = KINDS[kind]
    definition = OF_TYPE[fields["type"]].model_validate({**fields, "name": "place", "endpoint": store.url})
    client = datastores.make_client(ResolvedDatastore(definition, credentials), clients._options(), {"max_retries": 0})

    for status in (301, 302, 303, 307, 308):
        assert bytes(obstore.get(client, f"here{status}").bytes()) == b"a row\n"
        with pytest.raises(BaseError) as error:
            obstore.get(client, f"away{status}")
        assert is_led_away(str(error.value)), error.value
    for status in (307, 308):
        with pytest.raises(BaseError):
            obstore.put(client, f"away{status}", b"rows")

    assert not [request for request in store.requests if PRIVATE in request.path]


def test_a_store_of_the_environment_that_leads_elsewhere_is_refused_in_words(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"AWS_ENDPOINT_URL": store.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(clients, "_retries", lambda: {"max_retries": 0})
    clients.forget()
    with pytest.raises(AccessDenied, match=LED_AWAY):
        list(ObjectStorage().files(f"s3://{ALLOWED}/away302"))
    clients.forget()

    assert not [request for request in store.requests if PRIVATE in request.path]


def test_where_a_proxy_is_asked_it_decides(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", store.url)
    fields, credentials = KINDS["s3 with keys"]
    place = {**fields, "name": "place", "endpoint": "http://store.example"}
    options = clients._options()

    client = datastores.make_client(
        ResolvedDatastore(OF_TYPE["s3"].model_validate(place), credentials), options, {"max_retries": 0}
    )

    assert bytes(obstore.get(client, "x").bytes()) == b"a row\n"
    assert [request.host for request in store.requests] == ["store.example"]
