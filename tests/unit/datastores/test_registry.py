"""A process knows datastores and their secrets as they are now, and says what is missing and where."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.datastores.credentials import AccountKey, Keys, Sas, ServiceAccount, ServicePrincipal
from parallelrun_core.datastores.document import DatastoreCatalog, datastore_catalog, read_definition
from parallelrun_core.errors import CorruptLog, NotFound
from parallelrun_core.hosting.settings import ReadsStores
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretSource, SecretUnavailable
from parallelrun_core.service.secret_sources import folder as folder_module
from parallelrun_core.storage.objects.address import Address
from parallelrun_core.storage.objects.trouble import StoreAway
from parallelrun_core.storage.objects.uploads.s3 import is_s3

CANARY = "canary-0123456789"
S3 = {"type": "s3", "bucket": "abc", "credentials": {"secret": "key"}}
BLOB = {"type": "azure_blob", "account_name": "account", "container_name": "c", "credentials": {"secret": "key"}}
GCS = {"type": "gcs", "bucket": "abc", "credentials": {"secret": "key"}}
KEYS = f"access_key_id: a\nsecret_access_key: {CANARY}\n"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    (folder / "datastores").mkdir(parents=True)
    folder.chmod(0o700)
    return folder


@pytest.fixture(autouse=True)
def told(tmp_path: Path, secrets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatastoreCatalog]:
    monkeypatch.setattr(datastore_registry, "_FRESH_S", 0)
    datastore_registry.configure(tmp_path, ProcessSecrets(str(secrets)))
    yield datastore_catalog(tmp_path)
    datastore_registry._SOURCES.clear()


def known_with(
    told: DatastoreCatalog, secrets: Path, document: Mapping[str, object], content: str
) -> datastore_registry.ResolvedDatastore:
    told.define(read_definition(dict(document), name="d"))
    (secrets / "datastores" / "key").write_text(content)
    return datastore_registry.resolve("d")


@pytest.mark.parametrize(
    "document, content, credentials",
    [
        (S3, KEYS, Keys("a", CANARY)),
        (S3, json.dumps({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": CANARY, "aws_session_token": "t"}),
         Keys("a", CANARY, "t")),
        (BLOB, f"account_key: {CANARY}", AccountKey(CANARY)),
        (BLOB, f"sas_token: '?{CANARY}'", Sas(CANARY)),
        (BLOB, f"tenant_id: t\nclient_id: c\nclient_secret: {CANARY}\n", ServicePrincipal("t", "c", CANARY)),
    ],
)  # fmt: skip
def test_a_file_has_what_the_store_needs(
    told: DatastoreCatalog, secrets: Path, document: Mapping[str, object], content: str, credentials: object
) -> None:
    found_now = known_with(told, secrets, document, content)
    assert found_now.credentials == credentials
    assert CANARY not in repr(found_now)


def test_a_service_accounts_file_is_used_as_google_has_written_it(told: DatastoreCatalog, secrets: Path) -> None:
    account = {"type": "service_account", "client_email": "a@b", "private_key": CANARY}
    credentials = known_with(told, secrets, GCS, json.dumps(account)).credentials
    assert isinstance(credentials, ServiceAccount)
    assert json.loads(credentials.key_file) == account
    assert CANARY not in repr(credentials)


@pytest.mark.parametrize(
    "document, content",
    [
        (S3, ""), (S3, CANARY), (S3, f"access_key_id: {CANARY}"), (S3, f"{{a: {CANARY}"), (S3, f"- {CANARY}"),
        (S3, "x" * 70_000), (BLOB, f"account: {CANARY}"), (BLOB, f"account_key: [{CANARY}]"),
        (GCS, f"private_key: {CANARY}"), (S3, f"access_key_id: a\nsecret_access_key: {{x: {CANARY}}}"),
    ],
)  # fmt: skip
def test_a_file_with_something_else_is_refused_without_a_word_of_it(
    told: DatastoreCatalog, secrets: Path, document: Mapping[str, object], content: str
) -> None:
    with pytest.raises(
        datastore_registry.DatastoreUnusable, match=r"datastore 'd': its secret 'key' .* it must have"
    ) as refused:
        known_with(told, secrets, document, content)
    assert CANARY not in f"{refused.value!r}{refused.value.__cause__!r}"
    assert refused.value.__suppress_context__


def test_what_is_changed_is_known_at_once_by_whoever_asks(told: DatastoreCatalog, secrets: Path) -> None:
    before = known_with(told, secrets, S3, KEYS)
    assert datastore_registry.resolve("d") is before
    after = known_with(told, secrets, S3, KEYS.replace(CANARY, "rotated"))
    assert after.credentials == Keys("a", "rotated")
    told.define(read_definition(S3 | {"prefix": "2026"}, name="d"))
    assert datastore_registry.resolve("d").datastore.root == "s3://abc/2026"
    told.remove("d")
    with pytest.raises(datastore_registry.DatastoreUnusable, match="no datastore 'd'"):
        datastore_registry.resolve("d")


def test_nothing_is_read_again_while_it_is_fresh(
    told: DatastoreCatalog, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_with(told, secrets, S3, KEYS)
    monkeypatch.setattr(datastore_registry, "_FRESH_S", 3600)
    monkeypatch.setattr(datastore_registry, "_stamp", None)
    assert datastore_registry.resolve("d").credentials == Keys("a", CANARY)


def test_a_secret_that_cannot_be_read_is_told_as_that(
    told: DatastoreCatalog, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_fd: int, _size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    told.define(read_definition(S3, name="d"))
    (secrets / "datastores" / "key").write_text(KEYS)
    with monkeypatch.context() as patched:
        patched.setattr(folder_module, "os", SimpleNamespace(**(vars(os) | {"read": fail})))
        with pytest.raises(datastore_registry.DatastoreUnusable, match="key can't be read: Input/output error"):
            datastore_registry.resolve("d")


def test_the_stamp_of_a_secret_is_not_that_of_what_a_link_leads_to(secrets: Path) -> None:
    """It isn't read through a link either."""
    elsewhere = secrets / "elsewhere"
    elsewhere.write_text("a")
    (secrets / "datastores" / "key").symlink_to(elsewhere)
    source = ProcessSecrets(str(secrets))
    before = source.stamp("datastores/key")
    elsewhere.write_text("another one")
    assert source.stamp("datastores/key") == before


def test_a_source_of_an_unknown_scheme_is_refused_when_a_service_starts(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"secrets-dir: .*no source of secrets with valt://: .* a folder"):
        ReadsStores.from_command_line(["--secrets-dir", "valt://x"])
    assert ReadsStores.from_command_line(["--secrets-dir", str(tmp_path)]).secrets_dir == str(tmp_path)


class Rotating(SecretSource):
    """A source of secrets that is no folder: each content stays until it is replaced."""

    def __init__(self) -> None:
        super().__init__("")
        self.contents: dict[str, bytes] = {}
        self.reads = 0

    def read(self, name: str) -> bytes:
        self.reads += 1
        return self.contents[name]

    def stamp(self, name: str) -> object:
        return hash(self.contents[name])


def test_secrets_of_another_source_are_read_when_their_stamp_has_changed(
    told: DatastoreCatalog, tmp_path: Path
) -> None:
    source = Rotating()
    source.contents["datastores/key"] = KEYS.encode()
    datastore_registry.configure(tmp_path, source)
    told.define(read_definition(S3, name="d"))
    assert datastore_registry.resolve("d").credentials == Keys("a", CANARY)
    assert datastore_registry.resolve("d").credentials == Keys("a", CANARY)
    assert source.reads == 1
    source.contents["datastores/key"] = KEYS.replace(CANARY, "rotated").encode()
    assert datastore_registry.resolve("d").credentials == Keys("a", "rotated")


def test_what_is_missing_or_away_is_said_with_what_to_do(told: DatastoreCatalog, secrets: Path, tmp_path: Path) -> None:
    told.define(read_definition(S3, name="images"))
    with pytest.raises(datastore_registry.DatastoreUnusable, match=r"put it into .*/secrets/datastores/key"):
        datastore_registry.resolve("images")
    with pytest.raises(datastore_registry.DatastoreUnusable, match="did you mean 'images'"):
        datastore_registry.resolve("image")
    secrets.chmod(0o755)
    with pytest.raises(datastore_registry.DatastoreUnusable, match="chmod 700"):
        datastore_registry.resolve("images")
    datastore_registry.configure(tmp_path)
    with pytest.raises(datastore_registry.DatastoreUnusable, match="PARALLELRUN_SECRETS_DIR"):
        datastore_registry.resolve("images")
    away = Mock(read=Mock(side_effect=SecretUnavailable("ask again in a minute")), stamp=Mock(return_value=0))
    datastore_registry.configure(tmp_path, away)
    with pytest.raises(StoreAway, match="'images': its secret can't be read just now: ask again in a minute"):
        is_s3(Address("azureml://datastores/images/paths", "a"))
    told.define(read_definition(S3 | {"anonymous": True}, name="images"))
    assert datastore_registry.resolve("images").credentials is None


def test_definitions_are_files_for_the_services_alone(told: DatastoreCatalog, tmp_path: Path) -> None:
    assert told.names() == []
    assert told.define(read_definition(S3, name="b"))
    assert not told.define(read_definition(S3, name="b"))
    told.define(read_definition(BLOB, name="a"))
    assert told.names() == ["a", "b"]
    assert stat.S_IMODE(os.stat(tmp_path / "datastores" / "a.json").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "datastores").st_mode) == 0o700
    assert told.get("a") == read_definition(BLOB, name="a")


def test_a_definition_that_is_gone_or_damaged_is_named(told: DatastoreCatalog, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is none yet; define one with `parallelrun datastore create"):
        told.get("a")
    told.define(read_definition(S3, name="b"))
    with pytest.raises(NotFound, match="there are b"):
        told.remove("xyz")
    (tmp_path / "datastores" / "b.json").write_text('{"type": "s4"}')
    with pytest.raises(CorruptLog, match="define it again"):
        told.get("b")
