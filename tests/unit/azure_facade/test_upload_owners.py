"""Uploads of several people: whoever has begun one is the only one who adds to it or changes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from parallelrun_api.azure.blobs.store import BlobStore
from parallelrun_api.people.access import NotAllowed
from parallelrun_api.people.person import CURRENT, Person
from tests.unit.azure_facade.test_blobs import CONTAINER, content, put, stage

FOLDER = "LocalUpload/0123"


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path, max_bytes=1000)


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Make the requests inside those of a person who may submit jobs; `admin` may do everything."""
    token = CURRENT.set(Person(name, frozenset({"admin"} if name == "admin" else {"read", "submit"})))
    try:
        yield
    finally:
        CURRENT.reset(token)


@pytest.mark.parametrize("name", ["a.py", "b.py", "deep/c.py"])
def test_nobody_adds_to_an_upload_of_somebody_else_or_changes_it(store: BlobStore, name: str) -> None:
    with acting("anna"):
        put(store, f"{FOLDER}/a.py", b"of anna")
    with acting("bert"), pytest.raises(NotAllowed, match="upload of 'anna'"):
        put(store, f"{FOLDER}/{name}", b"of bert")
    with acting("anna"):
        put(store, f"{FOLDER}/{name}", b"anew")
        assert content(store, f"{FOLDER}/{name}") == b"anew"


def test_the_same_content_is_there_already(store: BlobStore) -> None:
    with acting("anna"):
        put(store, f"{FOLDER}/a.py", b"of both")
    with acting("bert"):
        put(store, f"{FOLDER}/a.py", b"of both")
        store.set_metadata(CONTAINER, f"{FOLDER}/a.py", {"upload_status": "completed"})
        stage(store, f"{FOLDER}/a.py", "1", b"of ")
        stage(store, f"{FOLDER}/a.py", "2", b"both")
        store.commit(CONTAINER, f"{FOLDER}/a.py", ["1", "2"])
    with acting("anna"):
        assert store.metadata(CONTAINER, f"{FOLDER}/a.py") == {}, "of bert"


def test_blocks_of_two_people_are_apart(store: BlobStore) -> None:
    with acting("anna"):
        stage(store, f"{FOLDER}/a.py", "1", b"of anna")
    with acting("bert"):
        stage(store, f"{FOLDER}/a.py", "1", b"of bert")
    with acting("anna"):
        store.commit(CONTAINER, f"{FOLDER}/a.py", ["1"])
        assert content(store, f"{FOLDER}/a.py") == b"of anna"


def test_clients_take_no_word_of_others_for_what_an_upload_is(store: BlobStore) -> None:
    """By its metadata, a client finds that a folder with the digest of its code is there, and uploads nothing."""
    with acting("mallory"):
        put(store, f"{FOLDER}/a.py", b"evil")
        store.set_metadata(CONTAINER, f"{FOLDER}/a.py", {"upload_status": "completed"})
        assert store.metadata(CONTAINER, f"{FOLDER}/a.py") == {"upload_status": "completed"}
    with acting("anna"):
        assert store.metadata(CONTAINER, f"{FOLDER}/a.py") == {}
        with pytest.raises(NotAllowed):
            put(store, f"{FOLDER}/a.py", b"good")


def test_files_of_admins_and_jobs_are_changed_by_admins_alone(store: BlobStore) -> None:
    with acting("admin"):
        put(store, f"{FOLDER}/a.py", b"of the admin")
        store.set_metadata(CONTAINER, f"{FOLDER}/a.py", {"version": "1"})
    rows = store.file(CONTAINER, "paths/rows.csv")
    rows.parent.mkdir(parents=True)
    rows.write_bytes(b"of a job")
    with acting("bert"):
        assert store.metadata(CONTAINER, f"{FOLDER}/a.py") == {"version": "1"}
        for blob in (f"{FOLDER}/b.py", "paths/rows.csv"):
            with pytest.raises(NotAllowed, match="whoever runs this server"):
                put(store, blob, b"of bert")
        put(store, "paths/other.csv", b"of bert")
    with acting("admin"):
        put(store, "paths/other.csv", b"of the admin")
        assert content(store, "paths/other.csv") == b"of the admin"


def test_an_upload_that_was_removed_is_free_for_all(store: BlobStore, tmp_path: Path) -> None:
    with acting("anna"):
        put(store, f"{FOLDER}/a.py", b"of anna")
    shutil.rmtree(store.file(CONTAINER, FOLDER))
    with acting("bert"), pytest.raises(NotAllowed):
        put(store, f"{FOLDER}/a.py", b"while she may be about to write it")
    [record] = (tmp_path / "azure" / "blobs" / "owners").iterdir()
    os.utime(record, (1, 1))
    with acting("bert"):
        put(store, f"{FOLDER}/a.py", b"of bert")


def test_the_files_of_a_version_are_those_of_one_person(store: BlobStore) -> None:
    container = "code-0123456789abcdef"

    def put_there(blob: str) -> None:
        with store.incoming() as file:
            file.write(blob.encode())
            store.put(container, blob, file)

    with acting("anna"):
        put_there("a.py")
    with acting("bert"), pytest.raises(NotAllowed):
        put_there("b.py")
