"""Uploads: names, blocks, quotas and lists."""

import os
import stat
from pathlib import Path
from xml.etree.ElementTree import ParseError

import pytest

from parallelrun_api.azure.blobs.listing import ListingRequest, blocks_of
from parallelrun_api.azure.blobs.names import checked_blob, checked_container
from parallelrun_api.azure.blobs.store import BlobStore, OverQuota
from parallelrun_core.errors import Conflict, InvalidInput, NotFound, UnsafePath
from parallelrun_core.storage.path_rule import PathRule, Places

CONTAINER = "azureml-blobstore"


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path, max_bytes=1000)


def put(store: BlobStore, blob: str, content: bytes) -> None:
    with store.incoming() as file:
        file.write(content)
        store.put(CONTAINER, blob, file)


def stage(store: BlobStore, blob: str, block: str, content: bytes) -> None:
    with store.incoming() as file:
        file.write(content)
        store.stage(CONTAINER, blob, block, file)


def content(store: BlobStore, blob: str) -> bytes:
    with open(store.open(CONTAINER, blob), "rb") as file:
        return file.read()


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "a\\b", "a\0b", "a/./b", "", "\ud800", "x" * 1025]
)
def test_a_name_that_is_no_path_below_its_container_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        checked_blob(name)


@pytest.mark.parametrize("name", ["..", "a", "A-B", "a/b", "-ab", "a--b", "x" * 80, "a.b"])
def test_a_container_has_a_plain_name(name: str) -> None:
    with pytest.raises(InvalidInput):
        checked_container(name)


def test_a_blob_is_there_whole_and_can_be_replaced(store: BlobStore) -> None:
    put(store, "LocalUpload/1/a.txt", b"first")
    store.set_metadata(CONTAINER, "LocalUpload/1/a.txt", {"version": "1"})
    put(store, "LocalUpload/1/a.txt", b"second")

    assert content(store, "LocalUpload/1/a.txt") == b"second"
    assert store.metadata(CONTAINER, "LocalUpload/1/a.txt") == {}
    assert list((store.folder.parent / "azure" / "blobs").glob(".new-*")) == []


def test_workers_of_other_users_can_read_it_and_not_list_what_is_there(store: BlobStore) -> None:
    put(store, "folder/a.txt", b"x")

    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (store.folder, store.folder / CONTAINER / "folder")]
    assert modes == [0o711, 0o755]
    assert stat.S_IMODE(store.file(CONTAINER, "folder/a.txt").stat().st_mode) == 0o644


def test_jobs_may_read_uploads_and_not_what_is_beside_them(tmp_path: Path) -> None:
    rule = PathRule(tmp_path, Places(roots=["/nowhere"], are_jobs_apart=True), job="job_" + "0" * 20)
    real = os.fsencode(tmp_path.resolve())

    assert rule.is_open(real + b"/uploads/azureml-blobstore/a.txt")
    assert not rule.is_open(real + b"/uploads/azureml-blobstore/a.txt", is_written=True)
    for closed in (b"/uploads", b"/azure/jobs/ids/x.json", b"/azure", b"/uploads2/x", b""):
        assert not rule.is_open(real + closed), closed


def test_a_name_is_a_file_or_a_folder(store: BlobStore) -> None:
    put(store, "a/b", b"x")

    with pytest.raises(Conflict):
        put(store, "a", b"y")
    with pytest.raises(Conflict):
        put(store, "a/b/c", b"y")
    assert content(store, "a/b") == b"x"


def test_a_link_that_somebody_has_put_there_leads_nowhere(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    put(store, "folder/a", b"x")
    (store.folder / CONTAINER / "folder" / "link").symlink_to(tmp_path / "secret")

    with pytest.raises(NotFound):
        store.open(CONTAINER, "folder/link")


def test_blocks_become_a_blob_in_the_order_of_their_list(store: BlobStore) -> None:
    for block, part in (("b", b"two"), ("a", b"one"), ("unused", b"x")):
        stage(store, "big", block, part)
    with pytest.raises(NotFound):
        store.open(CONTAINER, "big")

    store.commit(CONTAINER, "big", ["a", "b", "a"])

    store.commit(CONTAINER, "big", ["a", "b", "a"])  # as a client does that has not got the answer
    assert content(store, "big") == b"onetwoone"
    with pytest.raises(InvalidInput, match="not uploaded"):
        store.commit(CONTAINER, "big", ["a"])
    put(store, "big", b"another")
    with pytest.raises(InvalidInput, match="not uploaded"):
        store.commit(CONTAINER, "big", ["a", "b", "a"])


def test_a_block_that_is_named_a_thousand_times_counts_a_thousand_times(store: BlobStore) -> None:
    with store.room(200):
        stage(store, "bomb", "a", b"x" * 200)

    with pytest.raises(OverQuota):
        store.commit(CONTAINER, "bomb", ["a"] * 5)
    with pytest.raises(InvalidInput, match="blocks"):
        store.commit(CONTAINER, "bomb", ["a"] * 50_001)


def test_all_uploads_together_have_a_limit(store: BlobStore, tmp_path: Path) -> None:
    with store.room(600):
        put(store, "a", b"x" * 600)

    with pytest.raises(OverQuota):
        store.reserve(600)
    with pytest.raises(OverQuota):
        BlobStore(tmp_path, max_bytes=1000).reserve(600)
    store.reserve(400)


def test_room_that_was_kept_for_an_upload_that_broke_off_is_free_again(tmp_path: Path) -> None:
    now = [0.0]
    store = BlobStore(tmp_path, max_bytes=1000, clock=lambda: now[0])
    with pytest.raises(ConnectionError), store.room(900):
        raise ConnectionError

    with store.room(900):
        now[0] += 3600  # everything is counted anew, and what is still coming is not there yet
        with pytest.raises(OverQuota):
            store.reserve(101)


def test_what_was_given_up_is_removed_after_a_day(tmp_path: Path) -> None:
    later = BlobStore(tmp_path, max_bytes=1000, clock=lambda: os.stat(tmp_path).st_mtime + 2 * 24 * 3600)
    stage(later, "big", "a", b"x")
    put(later, "kept", b"x")
    later.set_metadata(CONTAINER, "kept", {"name": "n"})

    later.clean_up()

    with pytest.raises(InvalidInput):
        later.commit(CONTAINER, "big", ["a"])
    assert later.metadata(CONTAINER, "kept") == {"name": "n"}


def test_a_list_of_blocks_is_read_and_nothing_in_it_is_expanded() -> None:
    body = b"<?xml version='1.0'?><BlockList><Latest>YQ==</Latest><Committed> Yg== </Committed><X>no</X></BlockList>"
    bomb = b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">]><BlockList><Latest>&a;</Latest></BlockList>'

    assert blocks_of(body) == ["YQ==", "Yg=="]
    for broken in (bomb, b"<BlockList>", b"", b"\xff"):
        with pytest.raises(ParseError):
            blocks_of(broken)


@pytest.mark.parametrize("query", [{"maxresults": "x"}, {"marker": "ä"}, {"marker": "/w=="}])
def test_a_list_is_asked_for_with_what_a_page_before_has_said(query: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        ListingRequest.of(query)


def test_no_name_leaves_its_container(store: BlobStore) -> None:
    with pytest.raises(UnsafePath):
        store.open(CONTAINER, "../azure")
