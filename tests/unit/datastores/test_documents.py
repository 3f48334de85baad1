"""A document becomes the definition of a datastore, or is refused; no secret in it is repeated or written anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.datastores.definition import AzureBlobDatastore, Credentials, DataLakeDatastore, S3Datastore
from parallelrun_core.datastores.document import read_definition
from parallelrun_core.errors import InvalidInput

S3 = {"name": "images", "type": "s3", "bucket": "our-images"}
BLOB = {"name": "images", "type": "azure_blob", "account_name": "ouraccount", "container_name": "images"}
LAKE = {"name": "lake", "type": "azure_data_lake_gen2", "account_name": "ouraccount", "filesystem": "raw"}
GCS = {"name": "g", "type": "gcs", "bucket": "our-images"}
CANARY = "canary+0123456789/abcdefghijklmnop=="


def test_azure_mls_own_documents_are_read_as_they_are() -> None:
    blob = read_definition(
        {
            "$schema": "https://azuremlschemas.azureedge.net/latest/azureBlob.schema.json",
            "description": "Datastore pointing to a blob container using HTTPS.", "tags": {"team": "a"},
            "endpoint": "core.usgovcloudapi.net", "protocol": "wasbs", **BLOB,
        }
    )  # fmt: skip
    lake = read_definition(LAKE | {"protocol": "abfss"})

    assert isinstance(blob, AzureBlobDatastore)
    assert blob.root == "abfss://images@ouraccount.dfs.core.usgovcloudapi.net"
    assert blob.server == "https://ouraccount.blob.core.usgovcloudapi.net"
    assert isinstance(lake, DataLakeDatastore)
    assert lake.root == "abfss://raw@ouraccount.dfs.core.windows.net"


@pytest.mark.parametrize(
    "document, root",
    [
        (S3, "s3://our-images"),
        (S3 | {"prefix": "/a/b/"}, "s3://our-images/a/b"),
        (S3 | {"endpoint": "http://minio:9000/", "prefix": "a"}, "http://minio:9000/our-images/a"),
        (GCS, "gs://our-images"),
        (GCS | {"endpoint": "https://g.example.com"}, "https://g.example.com/our-images"),
        (BLOB | {"prefix": "x"}, "abfss://images@ouraccount.dfs.core.windows.net/x"),
        (BLOB | {"endpoint": "http://127.0.0.1:10000/ouraccount/"}, "http://127.0.0.1:10000/ouraccount/images"),
    ],
)
def test_a_definition_says_which_url_it_stands_for(document: dict[str, Any], root: str) -> None:
    assert read_definition(document).root == root


def test_a_file_on_the_nodes_is_the_only_form_of_a_secret() -> None:
    definition = read_definition(S3 | {"credentials": {"secret": "team/images"}})
    assert isinstance(definition, S3Datastore)
    assert definition.credentials == Credentials(secret="team/images")
    assert read_definition(S3 | {"credentials": None}).credentials is None


@pytest.mark.parametrize(
    "document",
    [
        BLOB | {"credentials": {"account_key": CANARY}},
        BLOB | {"credentials": {"sas_token": CANARY}},
        BLOB | {"credentials": {"tenant_id": "t", "client_id": "c", "client_secret": CANARY}},
        BLOB | {"credentials": CANARY},
        BLOB | {"credentials": {}, "description": ""},
        BLOB | {"credentials": [CANARY]},
        BLOB | {"credentials": {"secret": CANARY}},
        BLOB | {"credentials": {"secret": {"value": CANARY}}},
        BLOB | {"credentials": {"secret": "../x" + CANARY}},
        BLOB | {"credentials": {"secret": "x", "more": CANARY}},
        BLOB | {"credentials": {CANARY: "x"}},
        BLOB | {"account_key": CANARY},
        S3 | {"access_key_id": "a", "secret_access_key": CANARY},
        S3 | {"endpoint": f"https://user:{CANARY}@host"},
        S3 | {"endpoint": f"https://host/?sig={CANARY}"},
    ],
)
def test_a_document_with_a_secret_is_refused_without_repeating_it(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_definition(document)
    error: BaseException | None = refused.value
    while error is not None:
        assert CANARY not in f"{error}{error!r}{error.__notes__ if hasattr(error, '__notes__') else ''}"
        error = error.__cause__
    if "endpoint" not in document:
        assert "PARALLELRUN_SECRETS_DIR" in refused.value.problems[0].hint


@pytest.mark.parametrize(
    "document, pointer, message",
    [
        ([], "", "is a mapping"),
        ({"name": "x"}, "/type", "required"),
        ({"name": "x", "type": "azure_file"}, "/type", "can't be used here"),
        ({"name": "x", "type": "azure_blobs"}, "/type", "can't be used here"),
        ({"type": "s3", "bucket": "abc"}, "/name", "required"),
        ({"name": "../x", "type": "s3", "bucket": "abc"}, "/name", "letters, digits"),
        ({"name": "x", "type": "s3"}, "/bucket", "required"),
        (S3 | {"bukket": "x"}, "/bukket", "unknown field"),
        (S3 | {"prefix": "a/../b"}, "/prefix", "'..'"),
        (S3 | {"endpoint": "minio:9000"}, "/endpoint", "must be the URL of a server"),
        (S3 | {"endpoint": "file:///etc"}, "/endpoint", "must be the URL of a server"),
        (BLOB | {"endpoint": "-"}, "/endpoint", "core.windows.net"),
        (BLOB | {"account_name": "a.b/c"}, "/account_name", "3 to 24 lowercase"),
        (LAKE | {"protocol": "wasbs"}, "/protocol", "abfss"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(document: object, pointer: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_definition(document)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
    assert message in refused.value.problems[0].message


def test_the_name_may_come_from_elsewhere_but_not_contradict() -> None:
    assert read_definition({"type": "s3", "bucket": "abc"}, name="x").name == "x"
    with pytest.raises(InvalidInput, match="another name"):
        read_definition(S3, name="x")
