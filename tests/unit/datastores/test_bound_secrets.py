"""A secret goes to the bucket and the server of the datastore that has named it first, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.datastores.bound_secrets import BoundSecrets
from parallelrun_core.datastores.definition import Datastore
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import CorruptLog, InvalidInput
from parallelrun_core.service.process_secrets import ProcessSecrets

S3: dict[str, object] = {
    "type": "s3", "bucket": "images", "endpoint": "https://minio.example.com", "credentials": {"secret": "key"}
}  # fmt: skip
BLOB: dict[str, object] = {
    "type": "azure_blob", "account_name": "account", "container_name": "c", "credentials": {"secret": "key"}
}  # fmt: skip
LAKE: dict[str, object] = {
    "type": "azure_data_lake_gen2", "account_name": "account", "filesystem": "c", "credentials": {"secret": "key"}
}  # fmt: skip
GCS: dict[str, object] = {"type": "gcs", "bucket": "images", "credentials": {"secret": "key"}}
ELSEWHERE = [
    (S3, {"endpoint": "https://attacker.example.com"}), (S3, {"bucket": "other"}), (S3, {"endpoint": ""}),
    (S3, {"endpoint": "https://minio.example.com:8443"}), (S3, {"endpoint": "http://minio.example.com"}),
    (GCS, {"bucket": "other"}), (GCS, {"endpoint": "https://attacker.example.com"}),
    (BLOB, {"container_name": "other"}), (BLOB, {"account_name": "other"}),
    (BLOB, {"endpoint": "attacker.example.com"}),
    (BLOB, {"endpoint": "https://attacker.example.com/account"}),
]  # fmt: skip


def defined(document: dict[str, object], name: str = "d") -> Datastore:
    return read_definition(dict(document), name=name)


@pytest.mark.parametrize("document, change", ELSEWHERE)
def test_a_secret_is_for_the_first_bucket_that_has_named_it(
    document: dict[str, object], change: dict[str, object], tmp_path: Path
) -> None:
    BoundSecrets(tmp_path).check(defined(document))

    for name in ("d", "another"):  # the datastore itself, defined anew, and one beside it
        with pytest.raises(InvalidInput, match="under another name") as refused:
            BoundSecrets(tmp_path).check(defined(document | change, name))
        assert refused.value.problems[0].pointer == "/credentials/secret"


@pytest.mark.parametrize("same", [S3 | {"prefix": "2026"}, S3 | {"endpoint": "https://MINIO.example.com:443"}])
def test_another_folder_of_the_bucket_has_the_same_secret(same: dict[str, object], tmp_path: Path) -> None:
    bound = BoundSecrets(tmp_path)
    bound.check(defined(S3))

    bound.check(defined(same, "another"))


def test_both_faces_of_a_container_of_azure_are_one(tmp_path: Path) -> None:
    BoundSecrets(tmp_path).check(defined(BLOB))

    BoundSecrets(tmp_path).check(defined(LAKE))


def test_what_needs_no_secret_binds_none(tmp_path: Path) -> None:
    bound = BoundSecrets(tmp_path)
    bound.check(defined(S3 | {"anonymous": True}))
    bound.check(defined({"type": "s3", "bucket": "images"}))

    bound.check(defined(S3 | {"bucket": "other"}))


def test_datastores_from_before_share_their_secret_and_no_later_one_does(tmp_path: Path) -> None:
    catalog = datastore_catalog(tmp_path)
    first, second = defined(S3, "first"), defined(S3 | {"bucket": "second"}, "second")
    for each in (first, second):
        catalog.define(each)
    (tmp_path / "datastores" / "damaged.json").write_text("{")
    bound = BoundSecrets(tmp_path)

    with pytest.raises(InvalidInput):
        bound.check(defined(S3 | {"bucket": "third"}, "third"))

    bound.check(first)
    bound.check(second)


def test_of_many_that_name_a_secret_at_once_one_gets_it(tmp_path: Path) -> None:
    outcomes: list[bool] = []

    def define(number: int) -> None:
        try:
            BoundSecrets(tmp_path).check(defined(S3 | {"bucket": f"bucket{number}"}))
        except InvalidInput:
            outcomes.append(False)
        else:
            outcomes.append(True)

    threads = [threading.Thread(target=define, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == [False] * 7 + [True]


def test_a_binding_that_is_damaged_binds_to_nothing(tmp_path: Path) -> None:
    BoundSecrets(tmp_path).check(defined(S3))
    [file] = (tmp_path / "datastore-secrets").glob("*.json")
    file.write_bytes(file.read_bytes().replace(b"minio", b"other"))

    with pytest.raises(CorruptLog):
        BoundSecrets(tmp_path).check(defined(S3))


@pytest.fixture
def secrets(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "secrets"
    (folder / "datastores").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "datastores" / "key").write_text("access_key_id: a\nsecret_access_key: b\n")
    datastore_registry.configure(tmp_path, ProcessSecrets(str(folder)))
    yield folder
    datastore_registry._SOURCES.clear()


@pytest.mark.usefixtures("secrets")
def test_a_service_reads_no_secret_for_another_bucket(tmp_path: Path) -> None:
    """The API is not the only one that can write definitions: they are files below the root folder."""
    catalog = datastore_catalog(tmp_path)
    catalog.define(defined(S3, "images"))
    assert datastore_registry.resolve("images").credentials is not None
    catalog.define(defined(S3 | {"endpoint": "https://attacker.example.com"}, "attacker"))

    with pytest.raises(datastore_registry.DatastoreUnusable, match="is not sent to https://attacker") as refused:
        datastore_registry.resolve("attacker")

    assert "copy of the file" in str(refused.value)
