"""Which URLs of stores jobs may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import UnsafePath
from parallelrun_core.storage.objects.allowed import is_below, refusal
from parallelrun_core.storage.path_rule import EVERYWHERE, PathRule, Places
from parallelrun_core.storage.stores import storage_of

ROOTS = ["/data", "s3://bucket/team", "gs://", "https://h.example/public", "abfss://c@acc.dfs.core.windows.net"]


@pytest.mark.parametrize(
    "url, expected",
    [
        ("s3://bucket/team", True), ("s3://bucket/team/a/b", True), ("s3a://bucket/team/a", True),
        ("s3://bucket/teams", False), ("s3://bucket", False), ("s3://other/team", False),
        ("gs://any", True), ("gcs://any/x", True), ("az://c/x", False),
        ("https://h.example/public/f", True), ("https://h.example/publicity", False),
        ("http://h.example/public", False),
        ("https://h.example.evil/public/f", False), ("https://169.254.169.254/latest", False),
        ("wasbs://c@acc.blob.core.windows.net/k", True), ("https://acc.blob.core.windows.net/c/k", True),
        ("https://acc.blob.core.windows.net/d/k", False),
    ],
)  # fmt: skip
def test_what_is_below_an_allowed_url_may_be_used_in_every_spelling(url: str, expected: bool) -> None:
    assert is_below(url, ROOTS) is expected


@pytest.mark.parametrize("url", ["s3://b/k", "gcs://b", "az://c/k", "wasbs://c@a/k", "https://h/f", "http://h/f"])
def test_the_owner_of_a_machine_may_use_every_store(url: str) -> None:
    assert is_below(url, EVERYWHERE)


@pytest.mark.parametrize("roots", [["/"], ["/", "s3://other"]])
def test_no_url_is_allowed_by_a_folder_nor_by_another_bucket(tmp_path: Path, roots: list[str]) -> None:
    rule, storage = PathRule(tmp_path, Places(roots=roots)), storage_of("s3://b/k")

    trouble = storage.place_trouble("s3://b/k", rule, pattern=["*.csv"])

    assert trouble is not None
    assert ("outside of the places" in trouble.message, bool(trouble.hint)) == (True, True)
    with pytest.raises(UnsafePath):
        storage.files("s3://b/k", rule=rule)
    with pytest.raises(UnsafePath):
        storage.open("s3://b/k", rule)
    with pytest.raises(UnsafePath):
        storage.create("s3://b/k", "job", rule)


@pytest.mark.parametrize(
    "url, expected",
    [
        ("abfss://c@acc.dfs.core.windows.net/k", True), ("az://c/k", True),
        ("https://acc.blob.core.usgovcloudapi.net/c/k", True), ("abfss://c@acc.dfs.evil.example/k", False),
        ("wasbs://c@acc.blob.evil.example/k", False), ("abfss://c@acc.dfs.core.windows.net.evil.example/k", False),
    ],
)  # fmt: skip
def test_a_scheme_alone_stands_for_the_accounts_of_azure_and_for_no_other_server(url: str, expected: bool) -> None:
    assert is_below(url, ["abfss://"]) is expected


def test_urls_alone_allow_no_folder(tmp_path: Path) -> None:
    rule = PathRule(tmp_path / "root", Places(roots=["s3://b"]))
    assert rule.refusal(str(tmp_path)) is not None
    assert storage_of("s3://b/k").place_trouble("s3://b/k", rule) is None


def test_a_datastore_is_allowed_if_what_it_stands_for_is(tmp_path: Path) -> None:
    catalog = datastore_catalog(tmp_path)
    catalog.define(read_definition({"type": "s3", "bucket": "ours", "prefix": "a/b"}, name="d"))
    catalog.define(read_definition({"type": "s3", "bucket": "ours", "endpoint": "http://10.0.0.1:9000"}, name="inside"))
    datastore_registry.configure(tmp_path)
    path, inside = "azureml://datastores/d/paths/x", "azureml://datastores/inside/paths/x"

    def refused(url: str, *roots: str) -> str:
        trouble = refusal(url, PathRule(Path("/root"), Places(roots=list(roots))))
        return trouble.message if trouble else ""

    assert not refused(path, "s3://ours")
    assert not refused(path, "s3://ours/a/b/x")
    assert "stands for 's3://ours/a/b/x'" in refused(path, "s3://ours/a/c")
    assert "10.0.0.1" in refused(inside, "s3://")  # the server counts, whatever the bucket is called
    assert not refused(inside, "http://10.0.0.1:9000")
    assert not refused(inside, "http://10.0.0.1:9000/ours")
    assert refused(inside, "http://10.0.0.1:9000/other")
    assert refused("azureml://datastores/other/paths/x", "s3://") == "there is no datastore 'other'"
    datastore_registry._SOURCES.clear()
    assert "no datastores are known here" in refused(path, "s3://")
