"""What every store of documents must do, whatever it is made of."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.documents.store import DocumentExists, DocumentMissing, DocumentStore, VersionMismatch
from parallelrun_core.errors import CorruptLog
from tests.unit.documents.bucket import BucketStore
from tests.unit.documents.power_cut import watched


@pytest.fixture(params=["files", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DocumentStore:
    return FileStore(tmp_path, "documents") if request.param == "files" else BucketStore()


def test_store_returns_what_was_written(store: DocumentStore) -> None:
    assert store.names() == []
    store.create("b.json", b"one")
    assert store.replace("a.json", b"two"), "it is new"
    assert not store.replace("a.json", b"two")
    assert store.names() == ["a.json", "b.json"]
    assert store.read("b.json").data == b"one"
    assert store.exists("a.json")
    assert not store.exists("c.json")


def test_store_names_what_is_missing(store: DocumentStore) -> None:
    for attempt in (store.read, store.version, store.remove):
        with pytest.raises(DocumentMissing):
            attempt("none")
    with pytest.raises(DocumentMissing):
        store.remove_child("none")
    with pytest.raises(DocumentMissing):
        store.child("none").create("a", b"", if_store_exists=True)


def test_store_creates_a_document_once(store: DocumentStore) -> None:
    store.create("a", b"one")
    with pytest.raises(DocumentExists):
        store.create("a", b"two")
    assert store.read("a").data == b"one"
    other = store.child("other")
    other.create_from(store, "a")
    with pytest.raises(DocumentExists):
        other.create_from(store, "a")
    assert other.read("a").data == b"one"
    with pytest.raises(DocumentMissing):
        other.create_from(store, "b")


def test_store_replaces_only_the_version_that_was_read(store: DocumentStore) -> None:
    store.create("a", b"one")
    before = store.read("a").version
    store.replace("a", b"one")
    assert store.version("a") != before, "equal bytes are another version, too"
    with pytest.raises(VersionMismatch):
        store.replace("a", b"late", if_version=before)
    store.replace("a", b"in time", if_version=store.version("a"))
    assert store.read("a").data == b"in time"
    version = store.version("a")
    store.remove("a")
    with pytest.raises(VersionMismatch):
        store.replace("a", b"late", if_version=version)
    assert not store.exists("a")


def test_store_removes_a_child_with_all_that_is_in_it(store: DocumentStore) -> None:
    child = store.child("one")
    child.create("a", b"")
    child.child("deep").create("b", b"")
    store.child("made").make()
    store.create("document", b"")
    assert store.children() == ["made", "one"]
    assert store.names() == ["document"]
    assert (child.names(), child.children()) == (["a"], ["deep"])
    store.child("made").create("c", b"", if_store_exists=True)
    store.remove_child("one")
    assert store.children() == ["made"]
    with pytest.raises(DocumentMissing):
        child.create("a", b"", if_store_exists=True)


def test_store_lets_one_of_many_writers_replace_a_version_and_one_be_the_first(store: DocumentStore) -> None:
    store.create("a", b"0")
    version, wins, firsts = store.version("a"), [], []
    all_run = threading.Barrier(16)

    def write(number: int) -> None:
        with suppress(VersionMismatch):
            store.replace("a", b"%d" % number, if_version=version)
            wins.append(number)
        for name in map(str, range(20)):
            all_run.wait()
            if number % 2:
                if store.replace(name, b""):
                    firsts.append(name)
            else:
                with suppress(DocumentExists):
                    store.create(name, b"")
                    firsts.append(name)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(16)))
    assert len(wins) == 1
    assert store.read("a").data == b"%d" % wins[0]
    assert sorted(firsts, key=int) == list(map(str, range(20))), "each document was new to one of its writers"


@pytest.mark.parametrize(
    "write, data",
    [
        (lambda store: store.create("a", b"new"), b"new"),
        (lambda store: store.replace("a", b"new"), b"new"),
        (lambda store: store.replace("old", b"new"), b"new"),
        (lambda store: store.child("x").child("y").create("a", b"new"), b"new"),
    ],
    ids=["create", "replace nothing", "replace", "create below"],
)
def test_file_store_keeps_what_it_has_written_over_a_power_cut(
    tmp_path: Path, write: Callable[[DocumentStore], None], data: bytes
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    FileStore(root, "documents").create("old", b"old")
    with watched(root) as disk:
        write(FileStore(root, "documents"))
    for name, cut in (("names", disk.names_left), ("contents", disk.contents_lost)):
        cut(tmp_path / name)
        files = {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        assert data in files.values(), f"lost by the {name}"
        assert files["old"] in (b"old", data), "neither the old document nor the new one is there"


def test_file_store_keeps_the_old_document_when_the_power_fails_during_a_replacement(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    store = FileStore(root, "documents")
    store.create("a", b"old")
    with watched(root) as disk:
        real = os.replace

        def cut(*paths: str) -> None:
            real(*paths)
            disk.contents_lost(tmp_path / "left")

        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(os, "replace", cut)
            store.replace("a", b"new")
    assert (tmp_path / "left" / "documents" / "a").read_bytes() in (b"old", b"new")


def test_file_store_writes_a_new_document_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    store = FileStore(tmp_path, "documents")
    assert [store.replace("a", data) for data in (b"1", b"2")] == [True, False]
    assert store.read("a").data == b"2"


def test_file_store_reads_only_files_of_a_document_s_size(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "documents", max_bytes=10, follows_links=False)
    store.create("good", b"0123456789")
    store.create("large", b"0123456789a")
    (tmp_path / "documents" / "link").symlink_to(tmp_path / "documents" / "good")
    os.mkfifo(tmp_path / "documents" / "pipe")
    assert store.read("good").data == b"0123456789"
    for name, words in (("large", "larger than 10 bytes"), ("link", "is a link"), ("pipe", "is no file")):
        with pytest.raises(CorruptLog, match=words):
            store.read(name)


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../a", "a\0b", "a" * 300])
def test_file_store_has_no_document_of_a_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    store = FileStore(tmp_path, "documents")
    store.create("a", b"")
    assert not store.exists(name)
    with pytest.raises(DocumentMissing):
        store.read(name)
    with pytest.raises(ValueError, match="can't be the name"):
        store.create(name, b"")
