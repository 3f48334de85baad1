"""Values by name: what a collection makes of a store and a codec."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from parallelrun_core.documents.codecs import FieldsCodec, RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from tests.unit.documents.bucket import BucketStore


class Count(msgspec.Struct, frozen=True):
    value: int


def counts(root: Path, noun: str = "count") -> Documents[Count]:
    return Documents(FileStore(root, "counts"), RecordCodec(Count), noun=noun, create_hint="make one")


def fields(root: Path, key: bytes = b"") -> Documents[dict[str, Any]]:
    return Documents(FileStore(root, "fields"), FieldsCodec(dict, dict, key), noun="note")


def test_collection_says_what_there_is(tmp_path: Path) -> None:
    collection = counts(tmp_path)
    with pytest.raises(NotFound, match=r"There is no count 'one': there is none yet; make one\."):
        collection.get("one")
    assert collection.put("one", Count(1))
    assert not collection.put("one", Count(2))
    assert collection.get("one") == Count(2)
    assert collection.find("two") is None
    with pytest.raises(NotFound, match="did you mean 'one'"):
        collection.remove("oen")
    with pytest.raises(NotFound, match="there are one"):
        collection.version("xyz")
    collection.remove("one")
    assert collection.names() == []


@pytest.mark.parametrize("is_bucket", [False, True])
def test_collection_loses_no_update_of_many_at_once(tmp_path: Path, is_bucket: bool) -> None:
    store = BucketStore() if is_bucket else FileStore(tmp_path, "counts")

    def count_up() -> None:
        for _ in range(5):
            collection: Documents[Count] = Documents(store, RecordCodec(Count), noun="count")
            collection.update("a", lambda count: Count((count.value if count else 0) + 1))

    threads = [threading.Thread(target=count_up) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Documents(store, RecordCodec(Count), noun="count").get("a") == Count(30)


def test_collection_passes_over_what_is_no_document_of_it(tmp_path: Path) -> None:
    collection = counts(tmp_path)
    collection.put("one", Count(1))
    (tmp_path / "counts" / ".two.json.f00").write_text("half")
    (tmp_path / "counts" / "note.txt").write_text("of somebody else")
    (tmp_path / "counts" / "folder.json").mkdir()
    collection.put("one-more", Count(1))
    assert collection.names() == ["one", "one-more"]


def test_fields_are_read_with_and_without_a_version(tmp_path: Path) -> None:
    collection = fields(tmp_path)
    collection.put("new", {"a": 1})
    (tmp_path / "fields" / "old.json").write_text('{"a": 1}')
    (tmp_path / "fields" / "newer.json").write_text('{"schema": 2, "a": 1}')
    assert collection.get("new") == collection.get("old") == {"a": 1}
    with pytest.raises(NewerSchema, match=r"note 'newer' .* has schema 2"):
        collection.get("newer")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "x"}', "[" * 100_000])
def test_fields_that_are_none_are_damage(tmp_path: Path, text: str) -> None:
    (tmp_path / "fields").mkdir()
    (tmp_path / "fields" / "a.json").write_text(text)
    with pytest.raises(CorruptLog, match=r"note 'a' \(.*a\.json\) can't be read"):
        fields(tmp_path).get("a")


def test_sealed_fields_are_believed_only_with_their_key(tmp_path: Path) -> None:
    fields(tmp_path, b"key").put("a", {"b": 1})
    assert fields(tmp_path, b"key").get("a") == fields(tmp_path).get("a") == {"b": 1}
    fields(tmp_path).put("a", {"b": 1})
    with pytest.raises(CorruptLog, match="not defined through this cluster's API"):
        fields(tmp_path, b"key").get("a")
