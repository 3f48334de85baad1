"""What may stand where a path may stand, and what is refused instead of being taken for a folder's name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.storage.location import LOCAL, Location, datastore_of, joined, location_of, shortened
from parallelrun_core.storage.objects import environment
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.schemes import SCHEMES, Scheme
from parallelrun_core.storage.stores import STORAGES, storage_of
from parallelrun_core.storage.supported import KINDS, absolute_path, supported_path

LOCAL_FORMS = [
    ("/data/x", "/data/x"), ("data", "data"), ("./s3:", "./s3:"), ("~/x", "~/x"), ("a:b", "a:b"), ("C:/x", "C:/x"),
    ("file:data", "data"), ("file:./a b", "./a b"), ("file:/data", "/data"), ("file:///data", "/data"),
    ("file://localhost/data", "/data"), ("file://./a.csv", "./a.csv"), ("FILE:///data", "/data"),
    ("azureml:/data/x", "/data/x"), ("azureml:./x", "./x"), ("azureml:../x", "../x"), ("azureml:file:./x", "./x"),
    ("az:1.csv", "az:1.csv"), ("s3:x", "s3:x"), ("gs:x", "gs:x"), ("ftp:x", "ftp:x"),
    ("file:s3://b/x", "./s3://b/x"), ("file://gs://b", "./gs://b"), ("azureml:file:azureml:a:1", "./azureml:a:1"),
    ("file:file:x", "./file:x"), ("file:a:b", "a:b"),
]  # fmt: skip
IN_STORES = [
    ("s3://bucket/key", "s3"), ("S3://bucket", "s3"), ("s3a://b/c", "s3"), ("gs://b/c", "gs"),
    ("gcs://b", "gs"), ("az://c/p", "azure"),
    ("abfs://c@a.dfs.core.windows.net/p", "azure"), ("wasb://c/p", "azure"),
    ("wasbs://c@a.blob.core.windows.net/p", "azure"), ("http://127.0.0.1/y", "http"),
    ("https://a.blob.core.windows.net/c/p", "https"), ("azureml://datastores/d/paths/p", "datastore"),
]  # fmt: skip
ELSEWHERE = [
    ("azureml://datastores/d", "azureml"), ("azureml://datastores/d/p", "azureml"),
    ("azureml:images:1", "azureml"), ("azureml:images@latest", "azureml"),
    ("azureml:/subscriptions/s/resourceGroups/g/x/codes/c/versions/1", "azureml"), ("git+https://h/r", "git"),
    ("ftp://h/x", "ftp"), ("hdfs://h/x", "hdfs"), ("dbfs://x", "dbfs"),
]  # fmt: skip


@pytest.mark.parametrize("text, path", LOCAL_FORMS)
def test_a_local_path_in_any_spelling_is_a_local_path(text: str, path: str) -> None:
    location = location_of(text)
    assert (location.kind, location.path) == (LOCAL, path)
    assert supported_path(text) == path
    assert storage_of(path) is storage_of("/")


@pytest.mark.parametrize("text, kind", IN_STORES)
def test_a_url_of_an_object_store_is_its_own_path(text: str, kind: str) -> None:
    location = location_of(text)
    assert (location.kind, location.path) == (kind, text)
    assert supported_path(text) == supported_path(text, is_written=True) == text
    assert storage_of(text) is storage_of("s3://b") is not storage_of("/")


@pytest.mark.parametrize("text, kind", ELSEWHERE)
def test_another_kind_of_storage_is_refused_by_its_name_with_what_is_supported(text: str, kind: str) -> None:
    location = location_of(text)
    assert (location.kind, location.path) == (kind, text)
    with pytest.raises(ValueError, match=r"not supported yet and can't be read here.*https://.*: copy"):
        supported_path(text)
    with pytest.raises(ValueError, match=r"not supported yet and can't be written to here.*: name"):
        supported_path(text, is_written=True)
    with pytest.raises(ValueError, match="no storage"):
        storage_of(text)


@pytest.mark.parametrize(
    "text, path",
    [
        ("azureml://datastores/d/paths/a/b.csv", "azureml://datastores/d/paths/a/b.csv"),
        ("AzureML://Datastores/d/paths/A", "azureml://datastores/d/paths/A"),
        ("azureml://datastores/d/paths/", "azureml://datastores/d/paths/"),
        ("azureml://datastores/d/paths", "azureml://datastores/d/paths/"),
        ("azureml:/datastores/d/paths/a", "azureml://datastores/d/paths/a"),  # what `Path` makes of it
        (
            "azureml://subscriptions/1-2/resourcegroups/g/workspaces/w/datastores/d/paths/a/b",
            "azureml://datastores/d/paths/a/b",
        ),
        (
            "azureml://subscriptions/1/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/"
            "datastores/d/paths/a",
            "azureml://datastores/d/paths/a",
        ),
    ],
)
def test_each_form_of_a_path_in_a_datastore_becomes_the_same(text: str, path: str) -> None:
    assert location_of(text) == Location("datastore", path, "a datastore")
    assert supported_path(text) == path
    assert location_of(path).path == path
    assert datastore_of(path) == "d"
    assert address_of(path) == ("azureml://datastores/d/paths", path.partition("/paths/")[2])


@pytest.mark.parametrize(
    "path", ["/datastores/d/paths/x", "s3://b/k", "azureml:a:1", "azureml://datastores/d/paths/.."]
)
def test_what_is_in_no_datastore_is_not_taken_for_it(path: str) -> None:
    if datastore_of(path):
        with pytest.raises(ValueError, match="can't be asked for in a store"):
            address_of(path)


@pytest.mark.parametrize("text", ["file:", "file://", "FILE:"])
def test_a_form_without_a_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no file or folder"):
        supported_path(text)


@given(st.text(min_size=1).filter(lambda text: not text.startswith("~")))
def test_any_name_can_be_given_after_a_dot_and_a_slash(name: str) -> None:
    assert supported_path(f"./{name}") == f"./{name}"
    assert supported_path(f"/{name}") == f"/{name}"


@pytest.mark.parametrize(
    "text, path",
    [
        ("x", "/job/x"), ("file:x", "/job/x"), ("file:///x", "/x"), ("azureml:/x", "/x"), ("", ""), ("/x", "/x"),
        ("s3://b/c", "s3://b/c"), ("azureml:a:1", "azureml:a:1"),
    ],
)  # fmt: skip
def test_only_relative_local_paths_start_from_the_folder_of_the_document(text: str, path: str) -> None:
    assert absolute_path(text, Path("/job")) == path


@pytest.mark.parametrize(
    "url", ["s3://b/c/*.csv", "https://h/x", "abfss://c@a.dfs.core.windows.net/x", "azureml://datastores/d/paths/x"]
)
def test_a_url_that_was_made_a_path_is_a_url_again(url: str) -> None:
    assert supported_path(str(Path(url))) == url


def test_a_home_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match="no such home folder"):
        absolute_path("~nobody-of-this-name/x", Path("/job"))


def test_each_supported_kind_of_location_has_its_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apart, so that who reads a job spec imports no storage, and none of what that may need."""
    assert STORAGES.keys() == KINDS
    monkeypatch.setitem(SCHEMES, "swift", Scheme("swift", "Swift", "swift", is_container_first=True))
    assert address_of("swift://c@a.blob.x/k") == ("swift://c@a.blob.x", "k")


@pytest.mark.parametrize(
    "folder, path, whole",
    [
        ("/t", "a/b", "/t/a/b"), ("/t/", "./a", "/t/a"), ("/t", "/a", "/a"), ("/t", "../a", "/a"), ("t", "a", "t/a"),
        ("/t", "s3://b/a", "s3://b/a"), ("s3://b/t", "a", "s3://b/t/a"), ("s3://b/t", "../a", "s3://b/a"),
        ("s3://b/t", "/a", "/a"),
    ],
)  # fmt: skip
def test_a_relative_path_is_made_whole_in_a_folder_of_any_kind(folder: str, path: str, whole: str) -> None:
    assert shortened(joined(folder, path)) == whole


@pytest.mark.parametrize(
    "url, words",
    [
        ("az://", "names no bucket or container"),
        ("https://a.blob.core.chinacloudapi.cn/c/k", "'a.*public.*another cloud"),
        ("s3://AKIA:pw@b/k", "user name or a password"), ("https://me:pw@h/k", "user name or a password"),
        ("https://a.blob.core.windows.net/c/k?sv=2020&sig=pw", "signature"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=pw", "signature"), ("https://h/k?access_token=pw", "signature"),
        ("http://10.1.2.3/k", "unencrypted"), ("abfss://c:pw@a/k", "'a' is no account of Azure.*a datastore with its"),
        ("adl://a.azuredatalakestore.net/k", "no account of Azure's public cloud: write abfss://"),
    ],
)  # fmt: skip
def test_a_url_that_nobody_could_use_or_keep_is_refused_at_once(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        supported_path(url)
    assert "pw" not in str(refused.value).replace("password", "")


@pytest.mark.parametrize(
    "url",
    ["https://h/f.csv?download=1", "http://127.0.0.1:9/f", "http://localhost/f", "http://[::1]:9/f", "s3://b/a?.csv"],
)
def test_other_queries_and_servers_of_this_machine_are_taken(url: str) -> None:
    assert supported_path(url) == url
    assert (storage_of(url).split(url)[1] == []) is url.startswith("http")


def test_a_profile_that_is_not_there_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for ask in (environment.s3_credentials, environment.s3_region):
        with pytest.raises(OSError, match=r"nosuch.*AWS_PROFILE"):
            ask()


@pytest.mark.parametrize(
    "text, meant",
    [
        ("s4://bucket/x", "s3://bucket/x"),
        ("htps://host/x", "https://host/x"),
        ("azureml://datastores/ours/in/a", "azureml://datastores/ours/paths/in/a"),
        ("azureml:datastores/ours/in", "azureml://datastores/ours/paths/in"),
    ],
)
def test_what_was_probably_meant_is_said(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        supported_path(text)
