"""No spelling of a URL, nor of a path in a datastore, leads out of a place that jobs may use."""

from __future__ import annotations

import posixpath
import unicodedata
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parallelrun_core.datastores import registry
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.objects.allowed import is_below, refusal
from parallelrun_core.storage.path_rule import PathRule, Places
from parallelrun_core.storage.supported import supported_path
from parallelrun_core.untrusted import canonical
from tests.twins.sabotage import expect_failure, nothing

ROOT = "https://h.example/allowed"
ESCAPES = [
    "https://h.example/allowed/../x", "https://h.example/allowed/%2e%2e/x", "https://h.example/allowed/%2E./x",
    "https://h.example/allowed/%252e%252e/x", "https://h.example/allowed/..%2fx", "https://h.example/allowed/..%5cx",
    "https://h.example/allowed/..\\x", "https://h.example/allowed//../x", "https://h.example/allowed/./../x",
    "https://h.example/allowed/..;a=b/x", "https://h.example/allowed/\uff0e\uff0e/x",
    "https://h.example/allowed/\u2025/x",
    "https://h.example/allowed/%c0%ae%c0%ae/x", "https://h.example/allowed/%u002e%u002E/x",
    "https://h.example/allowed/..%c0%afx", "https://h.example/allowed/%e0%80%ae%f0%80%80%ae/x",
    "https://h.example/allowed/..%00/x", "https://h.example/allowed/.%0a./x", "https://h.example/allowed/..%2500y/x",
    "https://h.example/allowed//x", "https://h.example/allowed/%25252e%25252e/x", "s3://bucket/team/../x",
    "s3://bucket/team/%2e%2e/x", "s3://bucket/team//x", "gs://bucket/a/..\\x",
    "abfss://c@acc.dfs.core.windows.net/a/%2e%2e/x",
    "https://acc.blob.core.windows.net/c/a/%2e%2e/x", "azureml://datastores/d/paths/../x",
    "azureml://datastores/d/paths/a/%2e%2e/%2e%2e/x", "azureml://datastores/d/paths/a//x",
]  # fmt: skip
ODD_SERVERS = [
    "https://h.example\\@evil.example/allowed/x", "https://h.example%2f@evil/x", "https://h.ex ample/allowed",
    "https://evil.example#h.example/allowed/x", "https://h.example:99999/allowed/x", "https://h.example:x/a",
    "https://\u24d7.example/allowed", "s3://buck%2fet/x", "s3://buck\\et/x",
]  # fmt: skip
PIECES = [
    "allowed", "x", ".", "..", "/", "//", "\\", "%2e", "%2E", "%252e", "%2f", "%5c", "%25", ";",
    ";a", "\uff0e", "\u2025", " ", "%c0%ae", "%u002e", "%c1%9c", "%00", "%09",
]  # fmt: skip


def resolved(path: str) -> set[str]:
    """Every path that a server may see: decoded up to three times, with `\\` for `/`, without parameters."""
    paths: set[str] = set()
    for _ in range(4):
        for text in (path, unicodedata.normalize("NFKC", path)):
            for slashed in (text, text.replace("\\", "/")):
                names = [name.partition(";")[0].partition("\0")[0] for name in slashed.split("/")]
                plain = "/".join(name.replace("\t", "").strip() for name in names)
                paths |= {posixpath.normpath("/" + each.lstrip("/")) for each in (slashed, plain)}
        for longer, char in (("%c0%ae", "."), ("%u002e", "."), ("%c1%9c", "\\")):
            path = path.replace(longer, char)
        path = unquote(path)
    return paths


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_storage_no_spelling_of_a_url_leads_out_of_an_allowed_place(tail: str) -> None:
    check_spelling(tail)


def check_spelling(tail: str) -> None:
    """Whatever is allowed is below the allowed place for every server."""
    for url in (f"{ROOT}/{tail}", f"{ROOT}{tail}"):
        try:
            is_allowed = is_below(url, [ROOT])
        except ValueError:
            continue
        if is_allowed:
            assert all(
                f"{path}/".startswith("/allowed/") for path in resolved(url.removeprefix("https://h.example"))
            ), url


@given(st.lists(st.sampled_from([*PIECES, "bucket/team"]), max_size=8).map("".join))
def test_storage_no_spelling_of_a_key_leads_out_of_its_prefix(tail: str) -> None:
    try:
        is_allowed = is_below(f"s3://bucket/team/{tail}", ["s3://bucket/team"])
    except ValueError:
        return
    if is_allowed:
        assert all(f"{path}/".startswith("/team/") for path in resolved(f"/team/{tail}"))


@given(st.text(alphabet=st.characters(exclude_characters="/?#", exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_storage_an_honest_name_is_taken_as_it_is(name: str) -> None:
    quoted = quote(name, safe="")
    if name.strip() in (".", "..") or canonical._DOTS & canonical._names(quoted):
        return
    assert is_below(f"{ROOT}/{quoted}", [ROOT])


@pytest.mark.parametrize("url", [*ESCAPES, *ODD_SERVERS])
def test_storage_a_url_that_may_mean_another_is_refused_where_it_is_read(url: str, tmp_path: Path) -> None:
    check_escape(url, tmp_path)


def check_admitted(url: str, rule: PathRule) -> None:
    """Read a URL and compare it, as a submission does."""
    trouble = refusal(supported_path(url), rule)
    assert trouble is None, trouble


def check_escape(url: str, root: Path) -> None:
    """It is refused when a job is read, or at the latest when its paths are checked at submission."""
    datastore_catalog(root).put("d", read_definition({"type": "s3", "bucket": "bucket", "prefix": "team"}, name="d"))
    registry.configure(root)
    rule = PathRule(root, Places(roots=["s3://", "gs://", "abfss://", "https://"]))
    with pytest.raises(ValueError, match=r"(empty name|no URL|no server|not a URL|password|character)"):
        check_admitted(url, rule)


@pytest.mark.parametrize(
    "url", ["https://H.example:443/allowed/x", "https://h.example/allowed/a%20b", f"{ROOT}/", ROOT]
)
def test_storage_spellings_of_one_server_are_one_server(url: str) -> None:
    assert is_below(supported_path(url), [ROOT])


@pytest.mark.parametrize(
    "fields",
    [
        {"endpoint": "https://h.example/path"}, {"endpoint": "https://h.example/.."},
        {"endpoint": "https://h.example/%2e"},
        {"endpoint": "https://h.example\\.evil"}, {"endpoint": "ftp://h.example"}, {"endpoint": "https://"},
        {"prefix": "a/../b"}, {"prefix": "a/%2e%2e/b"}, {"prefix": "a//b"}, {"prefix": "a\\..\\b"},
    ],
)  # fmt: skip
def test_storage_a_datastore_names_an_origin_and_a_plain_prefix(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        read_definition({"type": "s3", "bucket": "bucket", **fields}, name="d")


def test_storage_an_endpoint_is_in_one_spelling() -> None:
    datastore = read_definition({"type": "s3", "bucket": "bucket", "endpoint": "https://H.example:443/"}, name="d")
    assert urlsplit(datastore.root).netloc == "h.example"


def test_storage_paths_that_nobody_reads_as_servers_do_are_found(tmp_path: Path) -> None:
    from parallelrun_core.storage.objects.address import address_of

    address_of.cache_clear()
    with patch.object(canonical, "check_key", nothing), expect_failure():
        check_spelling("/%2e%2e/x")
    address_of.cache_clear()


_WITH_SECRETS = ["https://user:canary@h/a/../x", "https://h/a/../x?sig=canary", "https://h h/?sig=canary"]


@pytest.mark.parametrize("url", _WITH_SECRETS)
def test_storage_no_refusal_of_a_url_repeats_a_secret_of_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"empty name|no server") as refused:
        supported_path(url)
    assert "canary" not in str(refused.value)
